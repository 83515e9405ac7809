// The fake driver: graphs that are recorded, in their modes, and whose calls end a recording.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "devices/fake_driver/state.h"

namespace fccl::core::simulated {

namespace {

struct Capture {
  GpuQueue* queue;
  CUstreamCaptureMode mode;
  std::thread::id thread;
  bool valid = true;
};

// No order between threads: without a recording nobody takes the mutex.
std::atomic<size_t> captures_outstanding{0};
std::mutex mutex_of_captures;
std::vector<Capture> captures;
thread_local CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool prohibits(const Capture& capture) {
  if (mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED || capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == std::this_thread::get_id()) return true;
  return mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

// Called with the mutex held.
std::vector<Capture>::iterator capture_of(GpuQueue* queue) { return std::ranges::find(captures, queue, &Capture::queue); }

}  // namespace

bool is_prohibited() {
  if (captures_outstanding.load(kRelaxed) == 0) return false;
  const std::scoped_lock lock(mutex_of_captures);
  bool prohibited = false;
  for (Capture& capture : captures) {
    if (!prohibits(capture)) continue;
    capture.valid = false;
    prohibited = true;
  }
  return prohibited;
}

}  // namespace fccl::core::simulated

using fccl::core::simulated::Answer;
using fccl::core::simulated::Capture;
using fccl::core::simulated::capture_of;
using fccl::core::simulated::captures;
using fccl::core::simulated::captures_outstanding;
using fccl::core::simulated::Gpu;
using fccl::core::simulated::GpuQueue;
using fccl::core::simulated::mode_of_thread;
using fccl::core::simulated::mutex_of_captures;
using fccl::core::simulated::on_stream;
using fccl::core::simulated::result_of;

extern "C" {

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) {
    const Answer<bool> capturing = gpu.is_capturing(queue);
    if (!capturing) return result_of(capturing);
    *status = *capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    const std::scoped_lock lock(mutex_of_captures);
    if (*capturing && !capture_of(queue)->valid) *status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) {
    const std::scoped_lock lock(mutex_of_captures);
    if (capture_of(queue) != captures.end()) return CUDA_ERROR_ILLEGAL_STATE;
    const CUresult begun = result_of(gpu.set_capturing(queue, true));
    if (begun != CUDA_SUCCESS) return begun;
    captures.push_back({queue, mode, std::this_thread::get_id()});
    captures_outstanding.store(captures.size(), fccl::core::simulated::kRelaxed);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = nullptr;
  return on_stream(stream, [](Gpu& gpu, GpuQueue* queue) {
    const std::scoped_lock lock(mutex_of_captures);
    const auto capture = capture_of(queue);
    if (capture == captures.end()) return CUDA_ERROR_ILLEGAL_STATE;
    const bool valid = capture->valid;
    captures.erase(capture);
    captures_outstanding.store(captures.size(), fccl::core::simulated::kRelaxed);
    const CUresult ended = result_of(gpu.set_capturing(queue, false));
    return valid || ended != CUDA_SUCCESS ? ended : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  });
}

CUresult cuGraphDestroy(CUgraph /*graph*/) { return CUDA_SUCCESS; }

}  // extern "C"
