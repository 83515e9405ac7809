// Asks torch for streams, and the driver whether a stream records a graph.
#include "accelerator.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <atomic>

namespace fccl::torch {
namespace {

std::atomic<c10::DeviceType> served{c10::DeviceType::CUDA};

// Declares the driver's functions by hand, since torch's headers do not need CUDA's. The results and modes are those of cuda.h.
constexpr int kCaptureImplicit = 906;  // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
constexpr int kRelaxed = 2;            // CU_STREAM_CAPTURE_MODE_RELAXED
struct Driver {
  int (*exchange_capture_mode)(int* mode);
  int (*is_capturing)(void* stream, int* status);
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// Finds the driver that the process has loaded, as any process with a tensor on the device has; otherwise there are no
// functions.
const Driver& driver() {
  static const Driver found = [] {
    Driver functions{};
    void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return functions;
    find(library, "cuThreadExchangeStreamCaptureMode", functions.exchange_capture_mode);
    find(library, "cuStreamIsCapturing", functions.is_capturing);
    return functions;
  }();
  return found;
}

int exchanged_mode(int mode) {
  if (driver().exchange_capture_mode != nullptr) (void)driver().exchange_capture_mode(&mode);
  return mode;
}

}  // namespace

c10::DeviceType accelerator() { return served; }

void stand_in_for_cuda(const std::string& device_type) { served = c10::Device(device_type).type(); }

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

c10::Stream pooled_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

fcclStream_t handle_of(const c10::Stream& stream) { return stream.native_handle(); }

// The driver is asked, since torch's streams cannot tell before 2.13.
bool is_capturing(const c10::Stream& stream) {
  if (driver().is_capturing == nullptr) return false;
  const c10::DeviceGuard on_device(stream.device());
  int status = 0;
  const int result = driver().is_capturing(handle_of(stream), &status);
  // The default stream answers so while a stream that waits for it records.
  return result == kCaptureImplicit || (result == 0 && status != 0);
}

CaptureGuard::CaptureGuard() : mode_(exchanged_mode(kRelaxed)) {}

CaptureGuard::~CaptureGuard() { exchanged_mode(mode_); }

bool is_done(const c10::Event& event) {
  const CaptureGuard guard;
  return event.query();
}

}  // namespace fccl::torch
