// Refuses streams and memory that no call can use, orders calls, waits for the GPU outside the driver, and raises its errors.
#include "device_calls/own_device.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "device_calls/retired_lanes.h"
#include "health/control.h"
#include "operations/communicator_state.h"
#include "os/clock.h"
#include "topology/columns.h"
#include "waiting/backoff.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookForDeathsEvery = 100ms;

// Returns the words for a place that no call can use, "" for a usable one.
const char* fault_of(MemoryPlace place) {
  switch (place) {
    case MemoryPlace::this_device:
    case MemoryPlace::managed:
    case MemoryPlace::pinned_host:
      return "";
    case MemoryPlace::other_device:
      return "memory of another GPU";
    case MemoryPlace::pageable_host:
      return "pageable host memory";
  }
  return "no memory that is known";
}

}  // namespace

std::string name_of(const Device& device) { return fmt::format("cuda:{} ({})", device.limits().ordinal, device.limits().name); }

Result<bool> OwnLane::is_drained() const {
  if (!device) return true;
  return stream ? device->is_drained() : device->is_idle();
}

// On the blocking path only the copy of a result can be left then.
bool OwnLane::has_begun() const {
  if (!device) return false;
  if (stream) return device->has_begun();
  return gpu_arrived && !device->is_idle().value_or(true);
}

void OwnLane::retire() {
  stream.reset();
  if (device) retired_lanes().add(std::move(device));
}

// Never dereferences the handle: it may be a stream of either kind, or no stream.
Result<void> OwnDevice::check_stream(const std::string& what, void* stream) {
  if (Stream::find(stream) != nullptr)
    return fail(MessageKind::other_stream,
                fmt::format("stream is a host stream (fcclStreamCreate), but the communicator is of CUDA "
                            "memory, on {}: give a cudaStream_t of that GPU, or NULL for its default stream",
                            name_of(*device_)));
  const Result<bool> owned = device_->owns({stream});
  if (!owned) return fail(raise(what, owned.error()));
  if (!*owned)
    return fail(MessageKind::other_stream,
                fmt::format("stream belongs to another GPU than the communicator, which is on {}: give a "
                            "cudaStream_t of that GPU",
                            name_of(*device_)));
  const Result<bool> capturing = device_->is_capturing({stream});
  if (!capturing) return fail(raise(what, capturing.error()));
  if (*capturing)
    return fail(fcclInvalidUsage,
                "stream records a CUDA graph, and calls of FCCL cannot be captured yet: issue the call outside "
                "of the capture; the capture goes on");
  return {};
}

Result<MemoryPlace> OwnDevice::check_place(const char* name, const void* pointer) const {
  const MemoryPlace place = device_->place_of(pointer);
  const std::string fault = fault_of(place);
  if (fault.empty()) return place;
  return fail(MessageKind::other_memory,
              fmt::format("{} ({}) is {}, but the communicator is of CUDA memory, on {}: give memory of that "
                          "GPU, managed or pinned memory. For host memory make a communicator with "
                          "memoryKind = fcclMemoryCpu",
                          name, pointer, fault, name_of(*device_)));
}

Result<OwnDevice::HostEnds> OwnDevice::check_buffers(const Call& call) const {
  const Signature& s = call.signature;
  const int rank = state_.control->peers.rank(), ranks = state_.columns->ranks();
  HostEnds on_host;
  if (s.row().gives(rank, s.root) && call.input(ranks).total() > 0) {
    FCCL_TRY_ASSIGN(const MemoryPlace place, check_place("sendbuff", call.send));
    on_host.input = place == MemoryPlace::pinned_host;
  }
  if (s.row().takes(rank, s.root) && call.output(ranks).total() > 0) {
    FCCL_TRY_ASSIGN(const MemoryPlace place, check_place("recvbuff", call.recv));
    on_host.output = place == MemoryPlace::pinned_host;
  }
  return on_host;
}

// Calls that end by marks of the user's come one after the other, as on one stream, whatever their lanes.
Result<void> OwnDevice::fork(DeviceLane& lane, Queue user) {
  FCCL_TRY(lane.fork(user));
  if (end_.native == nullptr || last_ended_ == nullptr || last_ended_ == &lane) return {};
  return lane.follow(*last_ended_);
}

Result<void> OwnDevice::join(DeviceLane& lane, Queue user) {
  if (end_.native == nullptr) return lane.join(user);
  last_ended_ = &lane;
  return lane.end(end_);
}

// Without the join, or the mark in its place, the user would run on while the queue still copies from and to the user's memory.
Result<void> OwnDevice::conclude(const std::string& what, Result<void> result, Result<void> joined) {
  if (result && joined) return {};
  const Error first = raise(what, result ? joined.error() : result.error());
  if (joined) return fail(first);
  return fail(fcclUnhandledCudaError,
              fmt::format("{}. The user's stream could not be made to wait for what the call has put on {} ({}): its buffers "
                          "may still be read and written. The GPU is lost to this process: end it",
                          first.message, name_of(*device_), joined.error().message));
}

// The wait is not in the driver: it holds no lock, and any failure of the communicator ends it.
Result<void> OwnDevice::await(const Wait& wait) {
  Control& control = *state_.control;
  const Clock::time_point began = Clock::now();
  Clock::time_point moved = began, next_look = began + kLookForDeathsEvery;
  for (uint64_t progress = wait.progress();;) {
    FCCL_TRY_ASSIGN(const bool done, wait.done());
    if (done) return {};
    if (auto failed = control.failures.first()) return fail(std::move(*failed));
    if (wait.cancel_check) FCCL_TRY(wait.cancel_check());
    const Clock::time_point now = Clock::now();
    if (const uint64_t here = wait.progress(); here != progress) {
      progress = here;
      moved = now;
    }
    if (now >= next_look) {
      next_look = now + kLookForDeathsEvery;
      control.liveness.look_for_deaths();
    }
    if (now - moved >= state_.timeout)
      return fail(control.failures.raise(
          {MessageKind::late_gpu,
           fmt::format("rank {} has waited {:.3g} s for its own GPU, cuda:{} ({}), {}. The deadline is the "
                       "communicator's timeout (FCCL_TIMEOUT, timeoutMs, fcclCommSetTimeout); look whether the CUDA "
                       "stream is held by an event, by another library, or still computes",
                       control.peers.rank(), std::chrono::duration<double>(now - moved).count(), device_->limits().ordinal,
                       device_->limits().name, wait.what())}));
    kForGpu.rest(now - began);
  }
}

Result<void> OwnDevice::await_idle(DeviceLane& lane, const std::function<std::string()>& what) {
  FCCL_TRY(await({[&] { return lane.is_idle(); }, [] { return 0; }, what}));
  lane.see_idle();
  return {};
}

// An error of the GPU may come from any earlier work on it, so it is final.
Error OwnDevice::raise(const std::string& what, const Error& error) {
  Control& control = *state_.control;
  if (auto failed = control.failures.first()) return *failed;
  return control.failures.raise({error.code, fmt::format("rank {} could not run {} on {}: {}", control.peers.rank(), what,
                                                         name_of(*device_), error.message)});
}

}  // namespace fccl::core
