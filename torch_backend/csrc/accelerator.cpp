// The kind of device that groups serve beside the CPU, through torch's own interface to it: no library of CUDA is linked.
#include "accelerator.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <atomic>

namespace fccl {
namespace {

std::atomic<c10::DeviceType> served{c10::DeviceType::CUDA};

// A template, so that a torch whose streams cannot tell compiles, too.
template <class Stream>
bool captures(const Stream& stream) {
  if constexpr (requires { stream.is_capturing(); }) return stream.is_capturing();
  return false;
}

}  // namespace

c10::DeviceType accelerator() { return served; }

void stand_in_for_cuda(const std::string& device_type) { served = c10::Device(device_type).type(); }

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

c10::Stream pooled_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

fcclStream_t handle_of(const c10::Stream& stream) { return stream.native_handle(); }

bool is_capturing(const c10::Stream& stream) { return captures(stream); }

}  // namespace fccl
