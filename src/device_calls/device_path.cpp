// Cuts a call into sub-calls, and runs each while the caller waits, or gives the GPU and the worker all of them at once.
#include "device_calls/device_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/program.h"
#include "health/control.h"
#include "kernels/reduce.h"
#include "operations/bounced_call.h"
#include "operations/communicator_state.h"
#include "operations/issued_call.h"
#include "operations/stream.h"
#include "settings/settings.h"
#include "topology/columns.h"

namespace fccl::core {
namespace {

// Numbers of the calls by which the ranks meet before and after the set-up of a lane: no sub-call has them.
constexpr uint32_t kBeforeSetUp = UINT32_MAX - 1, kBehindSetUp = UINT32_MAX;
// Entries that the blocking path reserves for the end of a call: it reports that it is drained, and sets two marks.
// kEntriesOfBlocking adds the fork, the wait for an earlier call and one copy; every further copy waits for its own room.
constexpr size_t kEntriesOfEnd = 3, kEntriesOfBlocking = 3 + kEntriesOfEnd;

bool may_bounce(const Device& device, const Settings& settings) {
  return settings.cuda_path != "blocking" && device.limits().waits_for_words;
}

}  // namespace

// A call that is being issued.
struct DevicePath::Issue {
  OwnLane& lane;
  LaneQueue& queue;
  const SubCalls& calls;
  Task task;
  const void* scalar;
  OwnDevice::HostEnds on_host;
  Queue user;
};

Result<void> DevicePath::check(const Device& device, const Settings& settings, int ranks) {
  const std::string& path = settings.cuda_path;
  if (path == "peer" && !device.limits().lends)
    return fail(MessageKind::gpus_apart,
                fmt::format("FCCL_CUDA_PATH=peer, but {} lends no memory to other processes: take host, bounce "
                            "or auto",
                            name_of(device)));
  if ((path == "bounce" || path == "host" || path == "peer") && !device.limits().waits_for_words)
    return fail(fcclInvalidUsage, fmt::format("FCCL_CUDA_PATH={}, but {} cannot wait for 64-bit words in memory: take "
                                              "blocking, or auto",
                                              path, name_of(device)));
  if (settings.cuda_buffer_bytes < SubCalls::least_buffer(ranks))
    return fail(fcclInvalidUsage, fmt::format("FCCL_CUDA_BUFFER={} has no room for {} ranks: give {} bytes or more",
                                              settings.cuda_buffer_bytes, ranks, SubCalls::least_buffer(ranks)));
  return {};
}

DevicePath::DevicePath(OwnDevice& gpu, const Settings& settings, CommunicatorState& state)
    : gpu_(gpu),
      state_(state),
      bounces_(may_bounce(*gpu.device(), settings)),
      shape_{.buffer_bytes = settings.cuda_buffer_bytes,
             .buffers = bounces_ ? 2 : 1,
             .queue_entries = std::min(settings.cuda_queue_entries, gpu.device()->limits().queue_entries)},
      landed_(gpu, settings, state) {}

// All checks that may refuse come before the call has a number.
Result<void> DevicePath::run(const Call& call, const void* scalar, void* stream) {
  const Signature& s = call.signature;
  const Device::Use use(*gpu_.device());
  if (!use.entered()) return fail(gpu_.raise(describe(s), use.entered().error()));
  FCCL_TRY(gpu_.check_stream(describe(s), stream));
  FCCL_TRY_ASSIGN(OwnDevice::HostEnds on_host, gpu_.check_buffers(call));
  on_host.scalar = scalar != nullptr && gpu_.is_on_host(scalar);
  FCCL_TRY(landed_.check(call));
  const LaneId id = lane_of(s.collective);
  const ReduceKernel kernel = kernel_of(s);
  const SubCalls calls(call, state_.control->peers.rank(), state_.columns->ranks(), shape_.buffer_bytes,
                       gpu_.device()->limits().most_pitch);
  Issue issue{lanes_[id], state_.lanes[id], calls, {call, state_.number++, kernel}, scalar, on_host, {stream}};
  state_.control->calls.say_issued(issue.task.number);
  if (!issue.lane.device) {
    FCCL_TRY(prepare(issue));
    FCCL_TRY(landed_.check(call));
  }
  if (landed_.serves(issue.lane, call))
    return landed_.run({issue.lane, issue.queue, issue.task, issue.scalar, issue.on_host, issue.user}, await_room_of(issue));
  return bounces_ && !issue.on_host.any() ? bounce(issue) : block(issue);
}

// Set-up may wait for all work that this process has given the GPU, and may keep other threads from giving it more. So the
// ranks meet before it, when each has issued its earlier work, and after it, before any issues this call.
Result<void> DevicePath::prepare(Issue& issue) {
  FCCL_TRY(meet(issue, kBeforeSetUp));
  auto made = DeviceLane::make(gpu_.device(), shape_);
  if (!made) return fail(gpu_.raise(describe(issue.task.call.signature), made.error()));
  if (bounces_) {
    auto stream = Stream::make();
    if (!stream) return fail(gpu_.raise(describe(issue.task.call.signature), stream.error()));
    issue.lane.stream = std::move(*stream);
  }
  issue.lane.device = std::move(*made);
  FCCL_TRY(landed_.prepare(issue.task, issue.lane));
  return meet(issue, kBehindSetUp);
}

// Runs a call that moves nothing and looks like the next one. The lane is idle, since this is its first call.
Result<void> DevicePath::meet(const Issue& issue, uint32_t part) {
  Task meeting = issue.task;
  Signature& s = meeting.call.signature;
  s.elsewhere = std::exchange(s.count, 0);
  s.part = part;
  return IssuedCall(state_.around(), issue.queue, meeting, state_.timeout, {issue.queue.take_tickets(1), 0}).run();
}

AwaitRoom DevicePath::await_room_of(const Issue& issue) {
  return [this, &issue](size_t entries) -> Result<void> {
    const DeviceLane& own = *issue.lane.device;
    if (own.has_room(entries)) return {};
    return gpu_.await({[&] { return own.has_room(entries); }, [&] { return own.outstanding(); },
                       [&] {
                         return "to finish earlier calls, so that its queue has room for " +
                                state_.control->calls.describe(issue.task);
                       }});
  };
}

Result<void> DevicePath::bounce(Issue& issue) {
  DeviceLane& lane = *issue.lane.device;
  Program program(lane, issue.calls, issue.scalar);
  const AwaitRoom await_room = await_room_of(issue);
  FCCL_TRY(await_room(program.entries_to_begin()));
  const BouncedCall::Program expected{lane, program.first_number(), issue.scalar != nullptr};
  issue.lane.stream->enqueue(std::make_unique<BouncedCall>(
      state_.around(), issue.queue, BouncedCall::Issued{issue.calls, issue.task, state_.timeout}, expected));
  Result<void> result = gpu_.fork(lane, issue.user);
  if (result) result = program.enqueue(await_room);
  program.end();
  return gpu_.conclude(describe(issue.task.call.signature), std::move(result), gpu_.join(lane, issue.user));
}

// Works also if the other ranks bounce: ranks need not take the same path.
Result<void> DevicePath::block(Issue& issue) {
  DeviceLane& lane = *issue.lane.device;
  issue.lane.gpu_arrived = false;
  Result<void> result = lane.has_room(kEntriesOfBlocking) ? Result<void>{} : await_own_gpu(issue);
  if (result) result = gpu_.fork(lane, issue.user);
  for (uint64_t part = 0; result && part < issue.calls.count(); ++part) result = run_sub_call(issue, part);
  if (result && bounces_) result = lane.end_copies();
  return gpu_.conclude(describe(issue.task.call.signature), std::move(result), gpu_.join(lane, issue.user));
}

Result<void> DevicePath::run_sub_call(Issue& issue, uint64_t part) {
  DeviceLane& lane = *issue.lane.device;
  FCCL_TRY(bring_in(issue, part));
  issue.lane.gpu_arrived = true;
  if (part == 0) state_.control->calls.say_begun(lane_of(issue.task.call.signature.collective), issue.task.number);
  if (issue.scalar != nullptr && part == 0) issue.task.call.scalar = lane.memory().scalar(issue.task.call.signature.dtype);
  Task task = issue.task;
  task.call = issue.calls.sub_call(part, lane.memory().buffer(0));
  task.call.scalar = issue.task.call.scalar;
  const uint64_t ended = part + 1 == issue.calls.count() ? 1 : 0;
  IssuedCall call(state_.around(), issue.queue, task, state_.timeout, {issue.queue.take_tickets(1), ended});
  FCCL_TRY(call.run());
  FCCL_TRY(take_out(issue, part));
  call.count_copied(bytes_on_host(issue, part));
  return {};
}

// Returns once the GPU has reached the call and the input is in the buffer.
Result<void> DevicePath::bring_in(Issue& issue, uint64_t part) {
  DeviceLane& lane = *issue.lane.device;
  LaneMemory& memory = lane.memory();
  std::byte* const buffer = memory.buffer(0);
  const fcclDataType_t dtype = issue.task.call.signature.dtype;
  const void* const scalar = part == 0 ? issue.scalar : nullptr;
  if (scalar != nullptr && !issue.on_host.scalar) FCCL_TRY(lane.copy(memory.copy_of_scalar(scalar, dtype)));
  if (!issue.on_host.input) FCCL_TRY(copy(issue, issue.calls.in(part, memory.device_address(buffer))));
  FCCL_TRY(await_own_gpu(issue));
  if (scalar != nullptr && issue.on_host.scalar) std::memcpy(&memory.words().scalar, scalar, size_of(dtype));
  if (issue.on_host.input) copy_on_host(issue.calls.in(part, buffer));
  return {};
}

Result<void> DevicePath::take_out(const Issue& issue, uint64_t part) {
  const LaneMemory& memory = issue.lane.device->memory();
  std::byte* const buffer = memory.buffer(0);
  if (!issue.on_host.output) return copy(issue, issue.calls.out(part, memory.device_address(buffer)));
  copy_on_host(issue.calls.out(part, buffer));
  return {};
}

// Bytes that this thread has copied, since their end lies in host memory.
size_t DevicePath::bytes_on_host(const Issue& issue, uint64_t part) {
  std::byte* const buffer = issue.lane.device->memory().buffer(0);
  const size_t in = issue.on_host.input ? issue.calls.in(part, buffer).bytes() : 0;
  return in + (issue.on_host.output ? issue.calls.out(part, buffer).bytes() : 0);
}

Result<void> DevicePath::copy(const Issue& issue, const Copies& copies) {
  DeviceLane& lane = *issue.lane.device;
  for (size_t i = 0; i < copies.count; ++i) {
    if (!lane.has_room(1 + kEntriesOfEnd)) FCCL_TRY(await_own_gpu(issue));
    FCCL_TRY(lane.copy(copies[i]));
  }
  return {};
}

Result<void> DevicePath::await_own_gpu(const Issue& issue) {
  return gpu_.await_idle(*issue.lane.device, [&] { return "to come to " + state_.control->calls.describe(issue.task); });
}

}  // namespace fccl::core
