// Reserves a lane's memory, which no fork inherits, and pins it.
#include "device/lane_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "os/memory.h"

namespace fccl::core {

LaneMemory::LaneMemory(std::shared_ptr<Device> device, size_t buffer_bytes, int buffers)
    : device_(std::move(device)), buffer_bytes_(buffer_bytes), buffers_(buffers) {}

Result<std::unique_ptr<LaneMemory>> LaneMemory::make(std::shared_ptr<Device> device, size_t buffer_bytes, int buffers) {
  std::unique_ptr<LaneMemory> made(new LaneMemory(std::move(device), buffer_bytes, buffers));
  FCCL_TRY(made->reserve());
  FCCL_TRY_ASSIGN(made->pinned_, made->device_->pin({made->memory_, made->bytes()}));
  return made;
}

LaneMemory::~LaneMemory() {
  pinned_.reset();
  if (memory_ != nullptr) ::munmap(memory_, bytes());
}

size_t LaneMemory::bytes() const { return kPageBytes + static_cast<size_t>(buffers_) * buffer_bytes_; }

// Uses mmap and not CUDA's allocator, because peers read this memory by process_vm_readv, which the kernel may refuse for a
// driver's pages. A fork does not inherit it: copy-on-write would take the pages from under the GPU.
Result<void> LaneMemory::reserve() {
  const auto failure = [&](const std::string& observed) {
    return fail(fcclSystemError,
                fmt::format("reserving {} bytes of host memory for calls on {} (FCCL_CUDA_BUFFER={}) failed: {}; "
                            "free memory, raise the container's memory limit, or lower FCCL_CUDA_BUFFER",
                            bytes(), device_->limits().name, buffer_bytes_, observed));
  };
  if (const AvailableMemory available = available_memory(); bytes() > available.bytes)
    return failure(fmt::format("only {} bytes are available, as {} says", available.bytes, available.limited_by));
  void* mapped = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return failure(std::strerror(errno));
  memory_ = static_cast<std::byte*>(mapped);
  (void)::madvise(memory_, bytes(), MADV_DONTFORK);
  words_ = new (memory_) LaneWords;
  return {};
}

std::byte* LaneMemory::buffer(uint64_t number) const {
  return memory_ + kPageBytes + number % static_cast<uint64_t>(buffers_) * buffer_bytes_;
}

Scalar LaneMemory::scalar(fcclDataType_t dtype) const {
  Scalar brought;
  std::memcpy(&brought.bits, &words_->scalar.bits, size_of(dtype));
  return brought;
}

Copy LaneMemory::copy_of_scalar(const void* from, fcclDataType_t dtype) const {
  return {device_address(&words_->scalar), static_cast<const std::byte*>(from), size_of(dtype)};
}

WordOperation LaneMemory::write(DeviceWord& word, uint64_t value) const {
  return {WordOperation::Kind::write, device_address(&word), value};
}

WordOperation LaneMemory::wait(DeviceWord& word, uint64_t value) const {
  return {WordOperation::Kind::wait_for, device_address(&word), value};
}

}  // namespace fccl::core
