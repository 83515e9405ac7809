// Takes slots that the ranks agree on, gives the GPU the program of a call, or does its steps where a buffer is the host's.
#include "device_calls/landed_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "device_calls/landing_agreement.h"
#include "health/control.h"
#include "landing/step_program.h"
#include "metrics/page.h"
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
      path_(settings.cuda_path),
      bytes_(settings.cuda_landing_bytes),
      buffer_bytes_(settings.cuda_buffer_bytes) {
  const bool is_auto = path_ == "auto";
  const int hosts = state.columns->hosts();
  if (hosts == 1 && state.columns->ranks() > 1) {
    if (is_auto || path_ == "peer") kinds_.push_back(LandingKind::peer);
    if (is_auto || path_ == "host") kinds_.push_back(LandingKind::host);
  }
  if (hosts > 1 && (path_ == "host" || path_ == "peer"))
    log(LogLevel::info, fmt::format("FCCL_CUDA_PATH={} serves communicators of one host; this one has {}, so its calls on CUDA "
                                    "memory bounce through host memory (rank {})",
                                    path_, hosts, state.control->peers.rank()));
}

Result<void> LandedPath::prepare(OwnLane& lane, LaneQueue& queue, uint64_t number) {
  LandingAgreement agreement(gpu_, state_, queue, number, bytes_);
  for (const LandingKind kind : kinds_) {
    FCCL_TRY_ASSIGN(LandingFound found, agreement.find(kind, lane.stream != nullptr));
    if (found.slots) {
      lane.device->set_landing(std::move(found.slots));
      break;
    }
    if (path_ == "peer")
      refusal_ = {fcclInvalidUsage, fmt::format("FCCL_CUDA_PATH=peer, but {}: take host, bounce or auto", found.obstacle)};
    else
      log(LogLevel::info,
          fmt::format("{}; so {} (rank {})", found.obstacle,
                      kind == LandingKind::peer ? "the GPUs of this host do not read each other's memory"
                                                : "calls of all ranks on CUDA memory bounce through host memory",
                      state_.control->peers.rank()));
  }
  state_.joined.reset();
  return {};
}

Result<void> LandedPath::check(const Call& call) const {
  if (refusal_ && is_landed(call)) return fail(*refusal_);
  return {};
}

Result<void> LandedPath::run(const Issue& issue, const AwaitRoom& await_room) {
  const LandingSlots& landing = *issue.lane.device->landing();
  const Steps steps(issue.task.call, landing.rank(), landing.slot_bytes());
  return issue.on_host.any() ? copy_on_this_thread(issue, steps, await_room) : enqueue(issue, steps, await_room);
}

void LandedPath::give_to_worker(const Issue& issue, const Steps& steps, uint64_t number, uint64_t first_step) {
  const size_t path = issue.lane.device->landing()->is_on_host() ? metrics::kLandedPath : metrics::kPeerPath;
  const LandedCall::Program program{*issue.lane.device, number, first_step, steps.count(), path};
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
  const LandingSlots& landing = *issue.lane.device->landing();
  const bool on_host = issue.on_host.input && landing.is_on_host();
  const Copy copy =
      steps.given(step, on_host ? landing.slot(landing.rank(), number) : landing.device_slot(landing.rank(), number));
  return copy_part(issue, copy, {.from = issue.on_host.input, .to = on_host});
}

Result<void> LandedPath::copy_out(const Issue& issue, const Steps& steps, uint64_t step, uint64_t number) {
  const LandingSlots& landing = *issue.lane.device->landing();
  const bool on_host = issue.on_host.output && landing.is_on_host();
  for (int i = 1; i <= landing.ranks(); ++i) {
    const int peer = (landing.rank() + i) % landing.ranks();
    // The rank's own bytes, too, come out of its slot: its input and its output may lie in different places.
    const Copy copy = steps.taken(step, peer, on_host ? landing.slot(peer, number) : landing.device_slot(peer, number));
    FCCL_TRY(copy_part(issue, copy, {.from = on_host, .to = issue.on_host.output}));
  }
  return {};
}

// The GPU copies between the places that it has an address for; what the user has pinned goes through the lane's buffer, for
// which it has one.
Result<void> LandedPath::copy_part(const Issue& issue, const Copy& copy, const OnHost& on_host) {
  DeviceLane& lane = *issue.lane.device;
  if (copy.bytes == 0) return {};
  if (on_host.from && on_host.to) {
    std::memcpy(copy.to, copy.from, copy.bytes);
    return {};
  }
  if (!on_host.from && !on_host.to) return copy_and_wait(issue, copy);
  std::byte* const buffer = lane.memory().buffer(0);
  std::byte* const on_gpu = lane.memory().device_address(buffer);
  for (size_t done = 0; done < copy.bytes; done += buffer_bytes_) {
    const size_t bytes = std::min(buffer_bytes_, copy.bytes - done);
    if (on_host.from) std::memcpy(buffer, copy.from + done, bytes);
    FCCL_TRY(copy_and_wait(issue, on_host.from ? Copy{copy.to + done, on_gpu, bytes} : Copy{on_gpu, copy.from + done, bytes}));
    if (on_host.to) std::memcpy(copy.to + done, buffer, bytes);
  }
  return {};
}

Result<void> LandedPath::copy_and_wait(const Issue& issue, const Copy& copy) {
  FCCL_TRY(issue.lane.device->copy(copy));
  return await_own_gpu(issue);
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
