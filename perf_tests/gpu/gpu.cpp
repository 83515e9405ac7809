// Asks the driver for contexts, streams, memory and copies.
#include "gpu/gpu.h"

#include <bit>

namespace fccl::perf {
namespace {

GpuAddress address_of(const std::byte* at) { return std::bit_cast<GpuAddress>(at); }

}  // namespace

Result<std::unique_ptr<Gpu>> Gpu::open(int ordinal, bool default_stream) {
  const auto loaded = gpu_driver();
  if (!loaded) return loaded.error();
  const GpuDriver& driver = **loaded;
  const std::string where = " of GPU " + std::to_string(ordinal);
  int device = 0;
  void* context = nullptr;
  void* stream = nullptr;
  if (auto got = driver.check(driver.get(&device, ordinal), "cuDeviceGet" + where); !got) return got.error();
  // This is the context of the CUDA runtime: torch and FCCL use it, too. It is released with the process.
  auto entered = driver.check(driver.retain_context(&context, device), "cuDevicePrimaryCtxRetain" + where);
  if (entered) entered = driver.check(driver.set_current(context), "cuCtxSetCurrent" + where);
  if (entered && !default_stream)
    entered = driver.check(driver.make_stream(&stream, kNonBlockingStream), "cuStreamCreate" + where);
  if (!entered) return entered.error();
  return std::unique_ptr<Gpu>(new Gpu(driver, stream));
}

Gpu::~Gpu() {
  if (stream_) static_cast<void>(driver_.drop_stream(stream_));
}

Result<bool> Gpu::is_done() const {
  const GpuResult state = driver_.query_stream(stream_);
  if (state == kGpuNotReady) return false;
  if (auto looked = driver_.check(state, "cuStreamQuery"); !looked) return looked.error();
  return true;
}

GpuMemory::~GpuMemory() {
  for (const GpuAddress address : owned_) static_cast<void>(driver_.free(address));
}

Result<std::byte*> GpuMemory::allocate(std::size_t bytes) {
  GpuAddress made = 0;
  if (auto got = driver_.check(driver_.allocate(&made, bytes), "cuMemAlloc of " + std::to_string(bytes) + " bytes"); !got)
    return got.error();
  owned_.push_back(made);
  return std::bit_cast<std::byte*>(made);
}

std::byte* GpuMemory::draft(std::byte*, std::size_t bytes) {
  if (copy_.size() < bytes) copy_.resize(bytes);
  return copy_.data();
}

Result<void> GpuMemory::put(std::byte* at, std::size_t bytes) {
  if (bytes == 0) return {};
  auto copied = driver_.check(driver_.copy_in(address_of(at), copy_.data(), bytes), "cuMemcpyHtoD");
  // The copy may return when the bytes have been read but not yet written, and the stream of this class does not wait for the
  // default stream.
  if (copied) copied = driver_.check(driver_.finish_stream(nullptr), "cuStreamSynchronize");
  return copied;
}

Result<const std::byte*> GpuMemory::look(const std::byte* at, std::size_t bytes) {
  std::byte* copy = draft(nullptr, bytes);
  if (bytes == 0) return copy;
  if (auto copied = driver_.check(driver_.copy_out(copy, address_of(at), bytes), "cuMemcpyDtoH"); !copied)
    return copied.error();
  return copy;
}

}  // namespace fccl::perf
