// Takes slots that the ranks agree on, gives the GPU the program of a call, or does its steps where a buffer is the host's.
#include "device_calls/landed_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "device/landing.h"
#include "device_calls/landing_agreement.h"
#include "device_calls/steps_on_thread.h"
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
// Beside its user's stream a rank has up to three queues, and a process at most 32 connections to a GPU. If more ranks share
// it, their queues share connections, and one rank's sums could wait behind another rank's push that waits for them.
constexpr int kMostAddingApart = 4;

// Its number in metrics.
size_t path_of(const DeviceLane& lane) { return lane.landing()->is_on_host() ? metrics::kLandedPath : metrics::kPeerPath; }

}  // namespace

LandedPath::LandedPath(OwnDevice& gpu, const Settings& settings, CommunicatorState& state)
    : gpu_(gpu),
      state_(state),
      path_(settings.cuda_path),
      buffer_bytes_(settings.cuda_buffer_bytes),
      blocks_(static_cast<int>(settings.cuda_blocks)) {
  const bool is_auto = path_ == "auto";
  const int hosts = state.columns->hosts(), ranks = state.columns->ranks();
  if (hosts == 1 && ranks > 1) {
    OfLane& gathers = lanes_[kGatherLane];
    OfLane& pairs = lanes_[kPairLane];
    gathers.bytes = settings.cuda_landing_bytes;
    pairs.bytes = ReduceSteps::bytes_of_slots(settings.cuda_landing_bytes, ranks);
    if (is_auto || path_ == "peer") gathers.kinds.push_back(LandingKind::peer);
    if (is_auto || path_ == "host") gathers.kinds.push_back(LandingKind::host);
    // Loading kernels waits for the work of the GPU, and no call waits for its stream unless its caller asks for that.
    if (path_ == "peer" && ranks <= gpu::kMostSources) pairs.kinds.push_back(LandingKind::pair);
  }
  if (hosts > 1 && (path_ == "host" || path_ == "peer"))
    log(LogLevel::info, fmt::format("FCCL_CUDA_PATH={} serves communicators of one host; this one has {}, so its calls on CUDA "
                                    "memory bounce through host memory (rank {})",
                                    path_, hosts, state.control->peers.rank()));
}

Result<void> LandedPath::check_memory() const {
  const OfLane& gathers = lanes_[kGatherLane];
  const OfLane& pairs = lanes_[kPairLane];
  if (pairs.kinds.empty() || gathers.bytes + pairs.bytes <= LandingSlots::kMostBytes) return {};
  const int ranks = state_.columns->ranks();
  size_t fits = gathers.bytes;
  while (fits + ReduceSteps::bytes_of_slots(fits, ranks) > LandingSlots::kMostBytes) fits -= Settings::kCudaLandingStep;
  return fail(fcclInvalidUsage,
              fmt::format("FCCL_CUDA_LANDING={} takes {} bytes of slots for AllGather and Broadcast, and {} for reductions "
                          "among {} ranks by FCCL_CUDA_PATH=peer; together they may take {} bytes of a GPU: give {} or less",
                          gathers.bytes, gathers.bytes, pairs.bytes, ranks, LandingSlots::kMostBytes, fits));
}

// Processes pass descriptors by the sockets of the creation, until no lane needs any more of them.
Result<void> LandedPath::prepare(const Task& task, OwnLane& lane) {
  const Signature& first = task.call.signature;
  const LaneId id = lane_of(first.collective);
  OfLane& own = lanes_[id];
  LandingAgreement agreement(gpu_, state_, id, task.number, own.bytes);
  for (const LandingKind kind : std::exchange(own.kinds, {})) {
    FCCL_TRY_ASSIGN(LandingFound found, agreement.find(kind, lane.stream != nullptr));
    if (found.slots) {
      const auto set = lane.device->set_landing(std::move(found.slots), found.sharing <= kMostAddingApart);
      if (!set) return fail(gpu_.raise(describe(first), set.error()));
      break;
    }
    if (path_ == "peer")
      own.refusal = {MessageKind::gpus_apart,
                     fmt::format("FCCL_CUDA_PATH=peer, but {}: take host, bounce or auto", found.obstacle)};
    else
      log(LogLevel::info,
          fmt::format("{}; so {} (rank {})", found.obstacle,
                      kind == LandingKind::peer ? "the GPUs of this host do not read each other's memory"
                                                : "calls of all ranks on CUDA memory bounce through host memory",
                      state_.control->peers.rank()));
  }
  if (std::ranges::all_of(lanes_, [](const OfLane& each) { return each.kinds.empty(); })) state_.joined.reset();
  return {};
}

bool LandedPath::is_landed(const Call& call) const {
  const Signature& s = call.signature;
  const int ranks = state_.columns->ranks();
  const OfLane& pairs = lanes_[kPairLane];
  if (!s.row().reduces) return Steps::serve(s) && s.count > 0;
  return pairs.bytes > 0 && ReduceSteps::serve(s, ranks, pairs.bytes / LandingSlots::kSlots / static_cast<size_t>(ranks));
}

Result<void> LandedPath::check(const Call& call) const {
  const std::optional<Error>& refusal = lanes_[lane_of(call.signature.collective)].refusal;
  if (refusal && is_landed(call)) return fail(*refusal);
  return {};
}

Result<void> LandedPath::run(const Issue& issue, const AwaitRoom& await_room) {
  DeviceLane& lane = *issue.lane.device;
  const LandingSlots& landing = *lane.landing();
  const Call& call = issue.task.call;
  if (!call.signature.row().reduces) {
    const Steps steps(call, landing.rank(), landing.slot_bytes());
    if (issue.on_host.any())
      return run_here(issue, steps.count(), await_room,
                      [&](StepsOnThread& thread, uint64_t first_step) { return thread.run(steps, first_step); });
    GatherProgram program(lane, steps);
    return enqueue(issue, program, await_room);
  }
  const ReduceSteps steps(call, landing.rank(), landing.ranks(), landing.slot_bytes());
  if (issue.on_host.any())
    return run_here(issue, steps.count(), await_room,
                    [&](StepsOnThread& thread, uint64_t first_step) { return thread.run(steps, first_step, blocks_); });
  ReduceProgram program(lane, steps, blocks_);
  return enqueue(issue, program, await_room);
}

void LandedPath::give_to_worker(const Issue& issue, const Numbers& numbers) {
  const LandedCall::Program program{*issue.lane.device,          numbers.call,           numbers.first_step, numbers.steps,
                                    path_of(*issue.lane.device), issue.scalar != nullptr};
  issue.lane.stream->enqueue(std::make_unique<LandedCall>(state_.around(), issue.queue, issue.task, state_.timeout, program));
}

Result<void> LandedPath::enqueue(const Issue& issue, StepProgram& program, const AwaitRoom& await_room) {
  DeviceLane& lane = *issue.lane.device;
  FCCL_TRY(await_room(program.entries_to_begin()));
  give_to_worker(issue, {program.number(), program.first_step(), program.steps()});
  Result<void> result = gpu_.fork(lane, issue.user);
  if (result) result = program.enqueue(issue.scalar, issue.task.call.signature.dtype, await_room);
  program.end();
  return gpu_.conclude(describe(issue.task.call.signature), std::move(result), gpu_.join(lane, issue.user));
}

void LandedPath::count_copied(const Issue& issue, size_t copied) {
  const Call& call = issue.task.call;
  state_.statistics.count_copied({.collective = call.signature.collective,
                                  .path = path_of(*issue.lane.device),
                                  .bytes = call.larger_buffer(state_.columns->ranks()),
                                  .read = copied});
}

template <class DoSteps>
Result<void> LandedPath::run_here(const Issue& issue, uint64_t steps, const AwaitRoom& await_room, DoSteps do_steps) {
  DeviceLane& lane = *issue.lane.device;
  const uint64_t number = lane.take_numbers(1), first_step = lane.take_steps(steps);
  FCCL_TRY(await_room(kEntriesOnThisThread));
  give_to_worker(issue, {number, first_step, steps});
  StepsOnThread thread(gpu_, state_, lane, {issue.task, issue.on_host, buffer_bytes_});
  Result<void> result = gpu_.fork(lane, issue.user);
  if (result) result = thread.await_call(issue.scalar);
  if (result) release_to_device(lane.words().ready, number);
  if (result) result = do_steps(thread, first_step);
  if (result) result = lane.end_copies();
  if (result) count_copied(issue, thread.copied());
  return gpu_.conclude(describe(issue.task.call.signature), std::move(result), gpu_.join(lane, issue.user));
}

}  // namespace fccl::core
