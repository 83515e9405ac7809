// Reserves a lane's words and buffers, and pins them.
#include "device/lane_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "arena/arena.h"
#include "os/memory.h"

namespace fccl::core {

namespace {

// A fork does not inherit it: copy-on-write would take the pages from under the GPU.
std::byte* map_private(size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  (void)::madvise(mapped, bytes, MADV_DONTFORK);
  return static_cast<std::byte*>(mapped);
}

}  // namespace

LaneMemory::LaneMemory(std::shared_ptr<Device> device, size_t buffer_bytes, int buffers)
    : device_(std::move(device)), buffer_bytes_(buffer_bytes), count_(buffers) {}

Result<std::unique_ptr<LaneMemory>> LaneMemory::make(std::shared_ptr<Device> device, size_t buffer_bytes, int buffers) {
  std::unique_ptr<LaneMemory> made(new LaneMemory(std::move(device), buffer_bytes, buffers));
  FCCL_TRY(made->reserve_words());
  FCCL_TRY(made->reserve_buffers());
  return made;
}

LaneMemory::~LaneMemory() {
  pinned_buffers_.reset();
  pinned_words_.reset();
  if (in_arena_) {
    (void)process_arena().free(buffers_);
  } else if (buffers_ != nullptr) {
    ::munmap(buffers_, bytes_of_buffers());
  }
  if (words_ != nullptr) ::munmap(words_, kPageBytes);
}

Result<void> LaneMemory::reserve_words() {
  std::byte* const page = map_private(kPageBytes);
  if (page == nullptr)
    return fail(fcclSystemError, fmt::format("mapping a page for words between {} and the host failed: {}",
                                             device_->limits().name, std::strerror(errno)));
  words_ = new (page) LaneWords;
  FCCL_TRY_ASSIGN(pinned_words_, device_->pin({page, kPageBytes}));
  return {};
}

// Uses memory that the kernel knows, and not CUDA's allocator: peers read it by process_vm_readv where it is not in the arena,
// which the kernel may refuse for a driver's pages.
Result<void> LaneMemory::reserve_buffers() {
  const auto failure = [&](const std::string& observed) {
    return fail(fcclSystemError,
                fmt::format("reserving {} bytes of host memory for calls on {} (FCCL_CUDA_BUFFER={}) failed: {}; "
                            "free memory, raise the container's memory limit, or lower FCCL_CUDA_BUFFER",
                            bytes_of_buffers(), device_->limits().name, buffer_bytes_, observed));
  };
  if (const AvailableMemory available = available_memory(); bytes_of_buffers() > available.bytes)
    return failure(fmt::format("only {} bytes are available, as {} says", available.bytes, available.limited_by));
  if (const Result<void*> in_arena = process_arena().allocate(bytes_of_buffers())) {
    buffers_ = static_cast<std::byte*>(*in_arena);
    in_arena_ = true;
  } else {
    buffers_ = map_private(bytes_of_buffers());
  }
  if (buffers_ == nullptr) return failure(std::strerror(errno));
  FCCL_TRY_ASSIGN(pinned_buffers_, device_->pin({buffers_, bytes_of_buffers()}));
  return {};
}

std::byte* LaneMemory::device_address(const void* host) const {
  const auto* const address = static_cast<const std::byte*>(host);
  const bool is_in_buffers = address >= buffers_ && address < buffers_ + bytes_of_buffers();
  return (is_in_buffers ? pinned_buffers_ : pinned_words_)->device_address(host);
}

std::byte* LaneMemory::buffer(uint64_t number) const {
  return buffers_ + number % static_cast<uint64_t>(count_) * buffer_bytes_;
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
