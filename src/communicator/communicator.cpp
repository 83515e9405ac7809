// Hands calls to their lanes, and ends a communicator.
#include "communicator/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "bootstrap/bootstrap.h"
#include "communicator/derivation.h"
#include "communicator/group.h"
#include "communicator/operators.h"
#include "creation/creation.h"
#include "device_calls/device_calls.h"
#include "device_calls/device_path.h"
#include "device_calls/own_device.h"
#include "device_calls/retired_lanes.h"
#include "device_calls/staged_call.h"
#include "device_calls/staged_path.h"
#include "health/control.h"
#include "hierarchical/hierarchical_lane.h"
#include "hierarchical/phases.h"
#include "metrics_server/server.h"
#include "operations/communicator_state.h"
#include "operations/host_function.h"
#include "operations/in_call.h"
#include "operations/issued_call.h"
#include "operations/issued_group.h"
#include "operations/stream.h"
#include "os/thread_fence.h"
#include "topology/columns.h"
#include "transfers/issued_transfers.h"
#include "waiting/backoff.h"

namespace fccl::core {
namespace {

constexpr const char* kForked = "this process is a fork of the one that made the communicator: make a new one after fork()";

// Gives the same answer on all ranks.
Result<void> check_room(const LaneQueue& lane, const Signature& signature) {
  if (!signature.row().has_pairs() || !lane.hierarchical || lane.hierarchical->planner.has_room_for_pairs()) return {};
  return fail(
      fcclInvalidUsage,
      fmt::format("{} between hosts with so unequal numbers of ranks needs a larger slot of the network, so that a message "
                  "between two of them holds a few bytes for each pair of their ranks: raise FCCL_WIRE_SLOT_BYTES, or "
                  "start as many ranks on every host",
                  name_of(signature.collective)));
}

// The estimate assumes that within a host every byte is copied twice at 10 GB/s; and that between hosts it goes over a network
// of 10 Gbit/s.
double seconds_for(double bytes, bool between_hosts) { return between_hosts ? 50e-6 + bytes / 1.25e9 : 1e-6 + bytes / 5e9; }

}  // namespace

Communicator::Communicator(const CreateOptions& options, std::unique_ptr<CommunicatorState> state)
    : options_(options),
      state_(std::move(state)),
      device_calls_(options.device ? std::make_unique<DeviceCalls>(options.device, options.settings, *state_) : nullptr),
      together_(std::make_unique<IssuedTransfers>()),
      rank_(state_->control->peers.rank()),
      ranks_(state_->columns->ranks()),
      operators_(std::make_unique<Operators>()),
      derivation_(std::make_unique<Derivation>(*this, *state_, device_calls_.get(), in_call_)) {}

Result<std::unique_ptr<Communicator>> Communicator::create(const UniqueId& id, int rank, int ranks,
                                                           const CreateOptions& options, const CancelCheck& cancel_check) {
  if (options.device) {
    retired_lanes().free_idle();
    if (auto possible = DevicePath::check(*options.device, options.settings, ranks); !possible) {
      decline({id, rank, ranks, {}, {}}, possible.error());
      return fail(std::move(possible).error());
    }
  }
  FCCL_TRY_ASSIGN(auto state, create_state(join_request(id, rank, ranks, options), options, cancel_check));
  if (state->columns->local() == 0) metrics::serve_if_asked(options.settings);
  return of_state(options, std::move(state), cancel_check);
}

Result<std::unique_ptr<Communicator>> Communicator::of_state(const CreateOptions& options,
                                                             std::unique_ptr<CommunicatorState> state,
                                                             const CancelCheck& cancel_check) {
  std::unique_ptr<Communicator> made(new Communicator(options, std::move(state)));
  if (!made->device_calls_) return made;
  FCCL_TRY(made->device_calls_->path().check_memory());
  made->state_->control->judge.ask(cancel_check);
  const Result<void> ready = made->device_calls_->staged().set_up(Deadline::after(options.settings.init_timeout));
  made->state_->control->judge.ask({});
  if (!ready) return fail(ready.error());
  return made;
}

std::vector<int> Communicator::dead_ranks() const { return state_->control->liveness.dead_ranks(); }

Communicator::~Communicator() {
  if (!check_own()) {
    (void)device_calls_.release();
    return;
  }
  sleep_until([this] { return !in_call_.load(std::memory_order_acquire); });
  if (device_calls_) device_calls_->leave();
  sleep_until([this] { return is_idle() && finalizing_.load(std::memory_order_acquire) == 0; });
}

Result<void> Communicator::run(const Call& call, Stream* stream) {
  const Signature& signature = call.signature;
  LaneQueue& lane = state_->lanes[lane_of(signature.collective)];
  if (Group::is_open()) [[unlikely]] {
    FCCL_TRY(check_room(lane, signature));
    Group::of_thread().add(*this, call, stream);
    return {};
  }
  const InCall inside(in_call_);
  // A fork may have copied its parent inside a call.
  FCCL_TRY(inside.is_outermost() ? check_usable() : check_own());
  FCCL_TRY(check_room(lane, signature));
  const ReduceKernel kernel = kernel_of(signature);
  if (stream == nullptr && lane.is_idle())
    return IssuedCall(state_->around(), lane, {call, state_->number++, kernel}, state_->timeout).run();
  // A number and a turn on the lane cannot be given back, so the queue is found first.
  FCCL_TRY_ASSIGN(Stream* const queue, queue_for(stream));
  const Task task{call, state_->number++, kernel};
  auto issued = std::make_unique<IssuedCall>(state_->around(), lane, task, state_->timeout);
  issued->keep_blocks();
  queue->enqueue(std::move(issued));
  return stream == nullptr ? blocking_->synchronize() : Result<void>{};
}

Result<void> Communicator::run_on_device(const Call& call, const OnDevice& on_device) {
  FCCL_TRY(check_own());
  FCCL_TRY(check_room(state_->lanes[lane_of(call.signature.collective)], call.signature));
  if (Group::is_open()) [[unlikely]] {
    Group::of_thread().add(*this, call, on_device);
    return {};
  }
  if (call.uneven != nullptr) return Group::run_alone(*this, call, on_device);
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  return device_calls_->path().run(call, on_device.scalar, on_device.stream);
}

Result<void> Communicator::transfer_on_device(const TransferEnd& transfer, const OnDevice& on_device) {
  if (!Group::is_open()) return Group::run_alone(*this, transfer, on_device);
  Group::of_thread().add(*this, transfer, on_device);
  return {};
}

Result<void> Communicator::check_on_device(const CallOrTransfer& operation, const OnDevice& on_device) {
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  return device_calls_->staged().check(operation, on_device);
}

// Once the first operation of a group was accepted, the rest are, too, even if another thread finalizes the communicator in
// between.
Result<std::unique_ptr<StagedCall>> Communicator::stage(const CallOrTransfer& operation, const OnDevice& on_device) {
  const bool is_first = !in_call_.load(std::memory_order_relaxed);
  FCCL_TRY_ASSIGN(auto staged, StagedCall::make(operation, on_device, rank_, ranks_, in_call_));
  FCCL_TRY(is_first ? check_usable() : check_own());
  return staged;
}

Result<void> Communicator::bring_in(const StagedCall& call) { return device_calls_->staged().bring_in(call); }

// Once the communicator has failed, the bytes on the host are no valid result.
Result<void> Communicator::take_out(const StagedCall& call, bool has_result) {
  return device_calls_->staged().take_out(call, has_result || !state_->control->failures.has_failed());
}

Result<void> Communicator::check_place(const char* name, const void* pointer) const {
  FCCL_TRY(device_calls_->gpu().check_place(name, pointer));
  return {};
}

Result<void> Communicator::transfer(const TransferEnd& transfer, Stream* stream) {
  if (Group::is_open()) [[unlikely]] {
    Group::of_thread().add(*this, transfer, stream);
    return {};
  }
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  if (stream == nullptr) {
    together_->add(state_->around_transfers(), transfer);
    return together_->run(state_->oversubscribed);
  }
  FCCL_TRY(stream->check_usable());
  auto alone = std::make_unique<IssuedGroup>();
  FCCL_TRY(issue(transfer, *alone));
  stream->enqueue(std::move(alone));
  return {};
}

Result<void> Communicator::issue(const Call& call, IssuedGroup& group) {
  const InCall inside(in_call_);
  FCCL_TRY(inside.is_outermost() ? check_usable() : check_own());
  const ReduceKernel kernel = kernel_of(call.signature);
  LaneQueue& lane = state_->lanes[lane_of(call.signature.collective)];
  const Task task{call, state_->number++, kernel};
  auto issued = std::make_unique<IssuedCall>(state_->around(), lane, task, state_->timeout);
  issued->keep_blocks();
  if (device_calls_) {
    state_->control->calls.say_issued(task.number);
    state_->control->calls.say_begun(lane_of(call.signature.collective), task.number);
    group.add_staged(std::move(issued));
  } else {
    group.add(std::move(issued));
  }
  group.wait_as(state_->oversubscribed);
  return {};
}

Result<void> Communicator::issue(const TransferEnd& transfer, IssuedGroup& group) {
  const InCall inside(in_call_);
  FCCL_TRY(inside.is_outermost() ? check_usable() : check_own());
  group.add(state_->around_transfers(), transfer);
  group.wait_as(state_->oversubscribed);
  return {};
}

Result<void> Communicator::transfer_together(std::span<const GroupedTransfer> transfers) {
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  const IssuedTransfer::Around around = state_->around_transfers();
  for (const GroupedTransfer& each : transfers) together_->add(around, each.end);
  return together_->run(state_->oversubscribed);
}

double Communicator::estimate(const Call& call) const {
  const double bytes = static_cast<double>(call.larger_buffer(ranks_));
  return seconds_for(bytes, hosts().hosts > 1);
}

double Communicator::estimate(const TransferEnd& transfer) const {
  const Columns& columns = *state_->columns;
  const bool goes_far = transfer.peer != FCCL_ANY_SOURCE && columns.host_of(transfer.peer) != columns.host();
  return seconds_for(static_cast<double>(transfer.envelope.bytes()), goes_far);
}

Result<Stream*> Communicator::queue_for(Stream* stream) {
  if (stream != nullptr) {
    FCCL_TRY(stream->check_usable());
    return stream;
  }
  if (is_in_host_function())
    return fail(fcclInvalidUsage, "a host function may not wait for a collective whose lane still has operations of streams");
  if (!blocking_) {
    FCCL_TRY_ASSIGN(auto made, Stream::make());
    blocking_ = std::move(made);
  }
  return blocking_.get();
}

Result<void> Communicator::check_own() const {
  if (!state_->is_own()) [[unlikely]]
    return fail(MessageKind::forked, kForked);
  return {};
}

Result<void> Communicator::check_open() const {
  FCCL_TRY(check_own());
  if (finalized_.load(std::memory_order_relaxed)) [[unlikely]]
    return fail(fcclInvalidUsage, "the communicator has been finalized: no call may follow but fcclCommDestroy");
  return {};
}

Result<void> Communicator::check_usable() const {
  FCCL_TRY(check_open());
  if (state_->control->failures.has_failed()) [[unlikely]]
    if (auto failed = state_->control->failures.first()) return fail(std::move(*failed));
  return {};
}

// The thread inside a call is asked first, so that the operations which it has issued are seen.
bool Communicator::is_idle() const {
  return !in_call_.load(std::memory_order_acquire) && std::ranges::all_of(state_->lanes, &LaneQueue::is_idle) &&
         state_->transfers.is_idle();
}

// Calls are refused from here on, so that a sequence of calls cannot keep finalize waiting.
Result<void> Communicator::finalize() {
  FCCL_TRY(check_own());
  finalizing_.fetch_add(1, std::memory_order_relaxed);
  finalized_.store(true, std::memory_order_relaxed);
  // A call that has not seen finalized_ is seen inside from here on.
  fence_all_threads();
  if (device_calls_) {
    sleep_until([this] { return !in_call_.load(std::memory_order_acquire); });
    // Operations that wait for this rank's GPU would otherwise wait for ever.
    if (const auto all = device_calls_->await_all(); !all) (void)device_calls_->gpu().raise("all issued calls", all.error());
  }
  sleep_until([this] { return is_idle(); });
  state_->control->liveness.leave();
  const std::optional<Error> failed = state_->control->failures.first();
  finalizing_.fetch_sub(1, std::memory_order_release);
  if (failed) return fail(*failed);
  return {};
}

Result<void> Communicator::revoke() {
  FCCL_TRY(check_own());
  (void)state_->control->failures.raise({MessageKind::aborted, fmt::format("rank {} aborted the communicator", rank_)});
  return {};
}

void Communicator::abort() {
  if (revoke()) sleep_until([this] { return is_idle() && finalizing_.load(std::memory_order_acquire) == 0; });
}

const char* Communicator::last_error() {
  static const std::string forked = with_code(kForked, MessageKind::forked);
  return check_own() ? state_->control->failures.text() : forked.c_str();
}

void Communicator::set_timeout(std::chrono::milliseconds timeout) { state_->timeout = timeout; }

void Communicator::set_end(Mark end) { device_calls_->gpu().set_end(end); }

const Statistics& Communicator::statistics() const { return state_->statistics; }

const InitCost& Communicator::init_cost() const { return state_->cost; }

bool Communicator::carries(fcclColl_t collective) const {
  return state_->columns->hosts() == 1 || goes_between_hosts(collective);
}

fcclHosts_t Communicator::hosts() const {
  const Columns& columns = *state_->columns;
  return {columns.hosts(), columns.most_ranks(), columns.columns(), state_->rails};
}

std::optional<Error> Communicator::async_error() {
  state_->control->liveness.look_for_deaths();
  return state_->control->failures.first();
}

}  // namespace fccl::core
