// Agrees on slots with the other ranks, gives the GPU the program of a call, or does its steps where a buffer is the host's.
#include "device_calls/landed_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "device/landing.h"
#include "device/step_program.h"
#include "health/control.h"
#include "operations/communicator_state.h"
#include "operations/landed_call.h"
#include "operations/stream.h"
#include "os/log.h"
#include "settings/settings.h"
#include "topology/columns.h"

namespace fccl::core {
namespace {

// Entries of a call whose steps this thread does, beside its copies, each of which waits for its own room: the fork, the wait
// for an earlier call, the write of `drained`, and two marks.
constexpr size_t kEntriesOnThisThread = 5;

}  // namespace

LandedPath::LandedPath(OwnDevice& gpu, const Settings& settings, CommunicatorState& state)
    : gpu_(gpu),
      state_(state),
      is_allowed_((settings.cuda_path == "auto" || settings.cuda_path == "host") && state.columns->hosts() == 1 &&
                  state.columns->ranks() > 1),
      bytes_(settings.cuda_landing_bytes) {
  if (settings.cuda_path == "host" && state.columns->hosts() > 1)
    log(LogLevel::info,
        fmt::format("FCCL_CUDA_PATH=host serves communicators of one host; this one has {}, so its calls on CUDA "
                    "memory bounce through host memory (rank {})",
                    state.columns->hosts(), state.control->peers.rank()));
}

// Each rank says twice how far it has come, since it cannot pin slots that a peer has not made.
Result<void> LandedPath::prepare(OwnLane& lane, LaneQueue& queue, uint64_t number) {
  if (!is_allowed_) return {};
  auto landing = make(lane);
  const LandingPlace mine = landing ? (*landing)->place() : LandingPlace{};
  std::vector<LandingPlace> places(static_cast<size_t>(state_.columns->ranks()));
  FCCL_TRY(exchange(queue, number, &mine, places.data(), sizeof mine));
  const bool all_made = std::ranges::all_of(places, [](const LandingPlace& place) { return place.offset != kNotInArena; });
  Result<void> reached = landing ? Result<void>{} : fail(landing.error());
  if (all_made) reached = reach_all(**landing, places);
  const auto reaches = static_cast<uint8_t>(all_made && reached);
  std::vector<uint8_t> all(places.size());
  FCCL_TRY(exchange(queue, number, &reaches, all.data(), sizeof reaches));
  if (std::ranges::all_of(all, [](uint8_t each) { return each != 0; })) {
    lane.device->set_landing(std::move(*landing));
  } else if (!reached) {
    log(LogLevel::info, fmt::format("{}; so calls of all ranks on CUDA memory bounce through host memory (rank {})",
                                    reached.error().message, state_.control->peers.rank()));
  }
  return {};
}

Result<std::unique_ptr<LandingSlots>> LandedPath::make(const OwnLane& lane) const {
  if (!lane.stream) return fail(fcclSystemError, name_of(*gpu_.device()) + " cannot wait for 64-bit words in memory");
  return LandingSlots::make(gpu_.device(), bytes_, state_.control->peers.rank(), state_.columns->ranks());
}

Result<void> LandedPath::reach_all(LandingSlots& landing, const std::vector<LandingPlace>& places) const {
  const Peers& peers = state_.control->peers;
  for (int rank = 0; rank < peers.count(); ++rank)
    if (rank != peers.rank()) FCCL_TRY(landing.reach(rank, peers[rank].member.pid, places[static_cast<size_t>(rank)]));
  return {};
}

// The lane is idle, since this is before its first call.
Result<void> LandedPath::exchange(LaneQueue& queue, uint64_t number, const void* mine, void* all, size_t bytes) {
  return IssuedCall(state_.around(), queue, {exchange_of(Issuer::first_call, mine, all, bytes), number}, state_.timeout).run();
}

Result<void> LandedPath::run(const Issue& issue, const AwaitRoom& await_room) {
  const LandingSlots& landing = *issue.lane.device->landing();
  const Steps steps(issue.task.call, landing.rank(), landing.slot_bytes());
  return issue.on_host.any() ? copy_on_this_thread(issue, steps, await_room) : enqueue(issue, steps, await_room);
}

void LandedPath::give_to_worker(const Issue& issue, const Steps& steps, uint64_t number, uint64_t first_step) {
  const LandedCall::Program program{*issue.lane.device, number, first_step, steps.count()};
  issue.lane.stream->enqueue(std::make_unique<LandedCall>(state_.around(), issue.queue, issue.task, state_.timeout, program));
}

Result<void> LandedPath::enqueue(const Issue& issue, const Steps& steps, const AwaitRoom& await_room) {
  DeviceLane& lane = *issue.lane.device;
  StepProgram program(lane, steps);
  FCCL_TRY(await_room(program.entries_to_begin()));
  give_to_worker(issue, steps, program.number(), program.first_step());
  Result<void> result = gpu_.fork(lane, issue.user);
  if (result) result = program.enqueue(await_room);
  program.end();
  return gpu_.conclude(describe(issue.task.call.signature), std::move(result), gpu_.join(lane, issue.user));
}

// A driver's copy between two host places would keep this thread inside the driver. So it writes the words that the GPU would,
// and copies itself what lies on the host.
Result<void> LandedPath::copy_on_this_thread(const Issue& issue, const Steps& steps, const AwaitRoom& await_room) {
  DeviceLane& lane = *issue.lane.device;
  const uint64_t number = lane.take_numbers(1), first_step = lane.take_steps(steps.count());
  FCCL_TRY(await_room(kEntriesOnThisThread));
  give_to_worker(issue, steps, number, first_step);
  Result<void> result = gpu_.fork(lane, issue.user);
  if (result) result = await_own_gpu(issue);
  if (result) release_to_device(lane.words().ready, number);
  if (result) result = do_steps(issue, steps, first_step);
  if (result) result = lane.end_copies();
  return gpu_.conclude(describe(issue.task.call.signature), std::move(result), gpu_.join(lane, issue.user));
}

Result<void> LandedPath::do_steps(const Issue& issue, const Steps& steps, uint64_t first_step) {
  StepWords& words = issue.lane.device->words().steps;
  const auto produce = [&](uint64_t step) -> Result<void> {
    const uint64_t number = first_step + step;
    FCCL_TRY(await_word(issue, words.all_taken, number + 1 - LandingSlots::kSlots));
    FCCL_TRY(copy_in(issue, steps, step, number));
    release_to_device(words.done, number + 1);
    return {};
  };
  const auto consume = [&](uint64_t step) -> Result<void> {
    const uint64_t number = first_step + step;
    FCCL_TRY(await_word(issue, words.all_done, number + 1));
    FCCL_TRY(copy_out(issue, steps, step, number));
    release_to_device(words.taken, number + 1);
    return {};
  };
  return in_order_of_steps(steps.count(), produce, consume);
}

Result<void> LandedPath::copy_in(const Issue& issue, const Steps& steps, uint64_t step, uint64_t number) {
  DeviceLane& lane = *issue.lane.device;
  const LandingSlots& landing = *lane.landing();
  if (issue.on_host.input) {
    const Copy copy = steps.given(step, landing.slot(landing.rank(), number));
    if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
    return {};
  }
  const Copy copy = steps.given(step, landing.device_slot(landing.rank(), number));
  if (copy.bytes == 0) return {};
  FCCL_TRY(lane.copy(copy));
  return await_own_gpu(issue);
}

Result<void> LandedPath::copy_out(const Issue& issue, const Steps& steps, uint64_t step, uint64_t number) {
  DeviceLane& lane = *issue.lane.device;
  const LandingSlots& landing = *lane.landing();
  const bool on_host = issue.on_host.output;
  for (int i = 1; i <= landing.ranks(); ++i) {
    const int peer = (landing.rank() + i) % landing.ranks();
    // The rank's own bytes, too, come out of its slot: its input and its output may lie in different places.
    const std::byte* const slot = on_host ? landing.slot(peer, number) : landing.device_slot(peer, number);
    const Copy copy = steps.taken(step, peer, slot);
    if (copy.bytes == 0) continue;
    if (on_host) {
      std::memcpy(copy.to, copy.from, copy.bytes);
    } else {
      FCCL_TRY(lane.copy(copy));
      FCCL_TRY(await_own_gpu(issue));
    }
  }
  return {};
}

// The worker's half of the call judges how long its peers may take.
Result<void> LandedPath::await_word(const Issue& issue, const DeviceWord& word, uint64_t value) {
  uint64_t looks = 0;
  FCCL_TRY(gpu_.await({[&] { return has_come(word, value); }, [&] { return ++looks; },
                       [&] { return "in " + state_.control->calls.describe(issue.task); }}));
  if (auto failed = state_.control->failures.first()) return fail(std::move(*failed));
  return {};
}

Result<void> LandedPath::await_own_gpu(const Issue& issue) {
  return gpu_.await_idle(*issue.lane.device, [&] { return "to come to " + state_.control->calls.describe(issue.task); });
}

}  // namespace fccl::core
