// The way of a collective into its lane, and the end of a communicator.
#include "communicator/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "communicator/bounced_call.h"
#include "communicator/creation.h"
#include "communicator/device_calls.h"
#include "communicator/group.h"
#include "communicator/issued_group.h"
#include "communicator/parts.h"
#include "communicator/retired_lanes.h"
#include "communicator/shrink.h"
#include "communicator/split.h"
#include "communicator/stream.h"
#include "communicator/worker.h"
#include "hierarchical/columns.h"
#include "hierarchical/phases.h"

namespace fccl {
namespace {

constexpr std::chrono::microseconds kShortestPause{20};
constexpr std::chrono::microseconds kLongestPause{1000};

constexpr const char* kForked = "this process is a fork of the one that made the communicator: make a new one after fork()";

// Alike on all ranks.
Result<void> check_room(const LaneQueue& lane, const Signature& signature) {
  if (!signature.row().has_pairs() || !lane.hierarchical || lane.hierarchical->planner.has_room_for_pairs()) return {};
  return fail(
      fcclInvalidUsage,
      fmt::format("{} between hosts with so unequal numbers of ranks needs a larger slot of the network, so that a message "
                  "between two of them holds a few bytes for each pair of their ranks: raise FCCL_WIRE_SLOT_BYTES, or "
                  "start as many ranks on every host",
                  name_of(signature.collective)));
}

// Says while it lives that a thread is inside a call, for whoever ends the communicator to wait for. The calls of a split are
// within one.
class InCall {
 public:
  explicit InCall(std::atomic<bool>& flag) : flag_(flag), is_outermost_(!flag.load(std::memory_order_relaxed)) {
    flag_.store(true, std::memory_order_relaxed);
  }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall() {
    if (is_outermost_) flag_.store(false, std::memory_order_release);
  }
  bool is_outermost() const { return is_outermost_; }

 private:
  std::atomic<bool>& flag_;
  bool is_outermost_;
};

// Within a host every byte is copied twice at 10 GB/s; between hosts it goes over a network of 10 Gbit/s.
double seconds_for(double bytes, bool between_hosts) { return between_hosts ? 50e-6 + bytes / 1.25e9 : 1e-6 + bytes / 5e9; }

// Asks now and then: a call that ends on its own thread tells nobody, since that would cost it more than a store.
template <class Condition>
void sleep_until(Condition holds) {
  for (auto pause = kShortestPause; !holds(); pause = std::min(2 * pause, kLongestPause)) std::this_thread::sleep_for(pause);
}

}  // namespace

Communicator::Communicator(const CreateOptions& options, std::unique_ptr<Parts> parts)
    : options_(options),
      parts_(std::move(parts)),
      device_calls_(options.device ? std::make_unique<DeviceCalls>(options.device, options.settings, *parts_) : nullptr),
      rank_(parts_->control->rank()),
      ranks_(parts_->columns->ranks()) {}

Result<std::unique_ptr<Communicator>> Communicator::create(const UniqueId& id, int rank, int ranks,
                                                           const CreateOptions& options, const CancelCheck& cancel_check) {
  if (options.device) {
    retired_lanes().free_idle();
    if (auto possible = DeviceCalls::check(*options.device, options.settings, ranks); !possible) {
      decline({id, rank, ranks, {}, {}}, possible.error());
      return fail(std::move(possible).error());
    }
  }
  auto parts = create_parts(id, rank, ranks, options, cancel_check);
  if (!parts) return fail(std::move(parts).error());
  return std::unique_ptr<Communicator>(new Communicator(options, std::move(*parts)));
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key, const CreateOptions& options) {
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  if (options.device) FCCL_TRY(DeviceCalls::check(*options.device, options.settings, ranks_));
  if (device_calls_) FCCL_TRY(device_calls_->await_lane(kGatherLane));
  auto parts =
      Split(*parts_->control, rank_, ranks_, [this](const Call& call) { return run(call, nullptr); }).make(color, key, options);
  if (!parts) return fail(std::move(parts).error());
  return *parts ? std::unique_ptr<Communicator>(new Communicator(options, std::move(*parts))) : nullptr;
}

// Returns when no operation of this rank is under way.
Result<void> Communicator::prepare_shrink(ShrinkAs as) {
  FCCL_TRY(check_own());
  if (finalized_.load(std::memory_order_relaxed)) return check_usable();
  if (as == ShrinkAs::healthy) FCCL_TRY(check_usable());
  if (as == ShrinkAs::ended && !parts_->control->has_failed())
    (void)parts_->control->raise({fcclAborted, fmt::format("rank {} ended the communicator to shrink it", rank_)});
  if (device_calls_) (void)device_calls_->await_all();
  sleep_until([this] { return is_idle(); });
  return as == ShrinkAs::healthy ? check_usable() : Result<void>{};
}

Result<std::unique_ptr<Communicator>> Communicator::shrink(const std::vector<int>& excluded, ShrinkAs as,
                                                           const CreateOptions& options) {
  FCCL_TRY(Shrink::check(*parts_->columns));
  if (options.device) FCCL_TRY(DeviceCalls::check(*options.device, options.settings, ranks_));
  FCCL_TRY(prepare_shrink(as));
  const InCall inside(in_call_);
  shrinks_seen_.resize(static_cast<size_t>(ranks_));
  auto parts = Shrink(*parts_->control, *parts_->columns, shrinks_seen_).make(excluded, options);
  if (!parts) return fail(std::move(parts).error());
  return std::unique_ptr<Communicator>(new Communicator(options, std::move(*parts)));
}

std::vector<int> Communicator::dead_ranks() const { return parts_->control->dead_ranks(); }

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
  if (Group::is_open()) [[unlikely]] {
    Group::of_thread().add(*this, call, stream);
    return {};
  }
  const InCall inside(in_call_);
  // A fork may find its parent inside a call.
  FCCL_TRY(inside.is_outermost() ? check_usable() : check_own());
  const Signature& signature = call.signature;
  LaneQueue& lane = parts_->lanes[lane_of(signature.collective)];
  FCCL_TRY(check_room(lane, signature));
  const ReduceKernel kernel = kernel_of(signature);
  if (stream == nullptr && lane.is_idle())
    return IssuedCall(parts_->around(), lane, {call, parts_->number++, kernel}, parts_->timeout).run();
  // A number and a turn on the lane cannot be given back.
  const Result<Stream*> queue = queue_for(stream);
  if (!queue) return fail(queue.error());
  const Task task{call, parts_->number++, kernel};
  auto issued = std::make_unique<IssuedCall>(parts_->around(), lane, task, parts_->timeout);
  issued->keep_blocks();
  (*queue)->enqueue(std::move(issued));
  return stream == nullptr ? blocking_->synchronize() : Result<void>{};
}

Result<void> Communicator::run_on_device(const Call& call, const void* scalar, void* stream) {
  if (Group::is_open()) [[unlikely]]
    return fail(fcclNotImplemented,
                "calls on CUDA memory in a group are not implemented yet in this version of FCCL: issue the "
                "call outside of the group");
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  return device_calls_->run(call, scalar, stream);
}

Result<void> Communicator::check_place(const char* name, const void* pointer) const {
  return device_calls_->check_place(name, pointer);
}

Result<void> Communicator::transfer(const TransferEnd& transfer, Stream* stream) {
  if (Group::is_open()) [[unlikely]] {
    Group::of_thread().add(*this, transfer, stream);
    return {};
  }
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  if (stream == nullptr) return IssuedTransfer(parts_->around_transfers(), transfer).run();
  FCCL_TRY(stream->check_usable());
  auto alone = std::make_unique<IssuedGroup>();
  FCCL_TRY(issue(transfer, *alone));
  stream->enqueue(std::move(alone));
  return {};
}

Result<void> Communicator::issue(const Call& call, IssuedGroup& group) {
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  const ReduceKernel kernel = kernel_of(call.signature);
  LaneQueue& lane = parts_->lanes[lane_of(call.signature.collective)];
  auto issued = std::make_unique<IssuedCall>(parts_->around(), lane, Task{call, parts_->number++, kernel}, parts_->timeout);
  issued->keep_blocks();
  group.add(std::move(issued));
  group.wait_as(parts_->oversubscribed);
  return {};
}

Result<void> Communicator::issue(const TransferEnd& transfer, IssuedGroup& group) {
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  group.add(std::make_unique<IssuedTransfer>(parts_->around_transfers(), transfer));
  group.wait_as(parts_->oversubscribed);
  return {};
}

double Communicator::estimate(const Call& call) const {
  const double bytes = static_cast<double>(std::max(call.input(ranks_).total(), call.output(ranks_).total()));
  return seconds_for(bytes, hosts().hosts > 1);
}

double Communicator::estimate(const TransferEnd& transfer) const {
  const Columns& columns = *parts_->columns;
  const bool goes_far = transfer.peer != FCCL_ANY_SOURCE && columns.host_of(transfer.peer) != columns.host();
  return seconds_for(static_cast<double>(transfer.envelope.bytes()), goes_far);
}

// The user's stream, or the one for blocking calls that find their lane at work.
Result<Stream*> Communicator::queue_for(Stream* stream) {
  if (stream != nullptr) {
    FCCL_TRY(stream->check_usable());
    return stream;
  }
  if (Worker::is_this_thread())
    return fail(fcclInvalidUsage, "a host function may not wait for a collective whose lane still has operations of streams");
  if (!blocking_) {
    auto made = Stream::make();
    if (!made) return fail(std::move(made).error());
    blocking_ = std::move(*made);
  }
  return blocking_.get();
}

Result<void> Communicator::check_own() const {
  if (!parts_->is_own()) [[unlikely]]
    return fail(fcclInvalidUsage, kForked);
  return {};
}

Result<void> Communicator::check_usable() const {
  FCCL_TRY(check_own());
  if (finalized_.load(std::memory_order_relaxed)) [[unlikely]]
    return fail(fcclInvalidUsage, "the communicator has been finalized: no call may follow but fcclCommDestroy");
  if (parts_->control->has_failed()) [[unlikely]]
    if (auto failed = parts_->control->failure()) return fail(std::move(*failed));
  return {};
}

// The thread that is inside a call first, so that what it has issued is seen.
bool Communicator::is_idle() const {
  return !in_call_.load(std::memory_order_acquire) && std::ranges::all_of(parts_->lanes, &LaneQueue::is_idle) &&
         parts_->transfers.is_idle();
}

// Calls are refused at once, so that one after the other does not keep it waiting.
Result<void> Communicator::finalize() {
  FCCL_TRY(check_own());
  finalizing_.fetch_add(1, std::memory_order_relaxed);
  finalized_.store(true, std::memory_order_relaxed);
  // A call that has not seen it has shown by then that it is inside.
  std::this_thread::sleep_for(kShortestPause);
  if (device_calls_) {
    sleep_until([this] { return !in_call_.load(std::memory_order_acquire); });
    (void)device_calls_->await_all();
  }
  sleep_until([this] { return is_idle(); });
  parts_->control->leave();
  const std::optional<Error> failed = parts_->control->failure();
  finalizing_.fetch_sub(1, std::memory_order_release);
  if (failed) return fail(*failed);
  return {};
}

Result<void> Communicator::revoke() {
  FCCL_TRY(check_own());
  (void)parts_->control->raise({fcclAborted, fmt::format("rank {} aborted the communicator", rank_)});
  return {};
}

void Communicator::abort() {
  if (revoke()) sleep_until([this] { return is_idle() && finalizing_.load(std::memory_order_acquire) == 0; });
}

const char* Communicator::last_error() { return check_own() ? parts_->control->failure_text() : kForked; }

void Communicator::set_timeout(std::chrono::milliseconds timeout) { parts_->timeout = timeout; }

const Statistics& Communicator::statistics() const { return parts_->statistics; }

fcclHosts_t Communicator::hosts() const {
  const Columns& columns = *parts_->columns;
  return {columns.hosts(), columns.most_ranks(), columns.columns(), parts_->rails};
}

std::optional<Error> Communicator::async_error() {
  parts_->control->look_for_deaths();
  return parts_->control->failure();
}

Result<fcclRedOp_t> Communicator::create_operator(const Factor& factor) {
  size_t index = 0;
  while (index < factors_.size() && factors_[index]) ++index;
  if (index == factors_.size()) factors_.emplace_back();
  factors_[index] = factor;
  return static_cast<fcclRedOp_t>(fcclNumOps + index);
}

// Its place among the factors.
Result<size_t> Communicator::find_factor(fcclRedOp_t op) const {
  const size_t index = static_cast<size_t>(op) - fcclNumOps;
  if (op >= fcclNumOps && index < factors_.size() && factors_[index]) return index;
  return fail(fcclInvalidArgument,
              fmt::format("{} is no operator that fcclRedOpCreatePreMulSum made for this communicator", static_cast<int>(op)));
}

Result<void> Communicator::destroy_operator(fcclRedOp_t op) {
  const Result<size_t> index = find_factor(op);
  if (!index) return fail(index.error());
  factors_[*index].reset();
  return {};
}

Result<Communicator::Factor> Communicator::factor_of(fcclRedOp_t op, fcclDataType_t dtype) const {
  const Result<size_t> index = find_factor(op);
  if (!index) return fail(index.error());
  const Factor& factor = *factors_[*index];
  if (factor.dtype == dtype) return factor;
  return fail(fcclInvalidArgument,
              fmt::format("the operator was made for {}, the call is of {}", name_of(factor.dtype), name_of(dtype)));
}

}  // namespace fccl
