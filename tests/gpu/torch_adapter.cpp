// Question 7: what an adapter for torch needs of a GPU, by c10's interfaces for any device: built against torch, without
// libtorch_cuda.
#include <c10/core/Allocator.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdint>

#include "exports.h"

// Called by torch_probe.py.

namespace {

using fccl::gpu::guarded;

constexpr c10::DeviceType kGpu = c10::DeviceType::CUDA;

// A stream of torch's pool that waits for all that the current stream has to do.
c10::Stream order_other(const c10::impl::VirtualGuardImpl& guard, int device) {
  const c10::Device at(kGpu, static_cast<c10::DeviceIndex>(device));
  const c10::Stream other = guard.getStreamFromGlobalPool(at);
  c10::Event event(kGpu);
  event.record(guard.getStream(at));
  event.block(other);
  return other;
}

}  // namespace

// The cudaStream_t that torch's current stream is.
EXPORTED int current_stream(int device, uintptr_t* handle) {
  return guarded([&] {
    const c10::impl::VirtualGuardImpl guard(kGpu);
    const c10::Stream stream = guard.getStream(c10::Device(kGpu, static_cast<c10::DeviceIndex>(device)));
    *handle = reinterpret_cast<uintptr_t>(stream.native_handle());
  });
}

// Another stream of torch's pool waits for all that the current stream has to do; its cudaStream_t.
EXPORTED int order_behind_current(int device, uintptr_t* handle) {
  return guarded(
      [&] { *handle = reinterpret_cast<uintptr_t>(order_other(c10::impl::VirtualGuardImpl(kGpu), device).native_handle()); });
}

// Takes memory of torch's caching allocator and gives it back, after another stream was told to wait for the current one. If
// that stream is recorded as a user of the memory, the allocator may not hand it out again before that stream is done.
EXPORTED int allocate_and_free(int device, size_t bytes, int records, uintptr_t* address) {
  return guarded([&] {
    const c10::impl::VirtualGuardImpl guard(kGpu);
    const c10::Stream other = order_other(guard, device);
    const c10::DataPtr memory = c10::GetAllocator(kGpu)->allocate(bytes);
    *address = reinterpret_cast<uintptr_t>(memory.get());
    if (records != 0) guard.recordDataPtrOnStream(memory, other);
  });
}
