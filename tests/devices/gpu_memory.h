// GpuMemory: the memory that a simulated GPU has made or pinned, and how copies and words find it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "devices/address_space.h"
#include "devices/gpu_context.h"
#include "devices/refusal.h"

namespace fccl::core::simulated {

// The memory of one GPU, as its part of the AddressSpace. The Gpu owns it; destroying it unmaps what it made, and forgets what
// it pinned. Any thread may call where the GPU is current; reach and word_at alone do not ask for that.
class GpuMemory {
 public:
  GpuMemory(Gpu& gpu, GpuContext& context) : gpu_(gpu), context_(context) {}
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory();

  // Memory of users: device, managed or pinned. Only to free it waits.
  Answer<std::byte*> allocate(Region::Kind kind, size_t bytes);
  Answer<void> free(const std::byte* memory);

  // ---- Set up: waits for all that is outstanding and, meanwhile, keeps every other thread waiting that calls this GPU.
  // The GPU's address of it.
  enum class Pins : uint8_t { read_write, read_only };
  Answer<std::byte*> pin(std::span<std::byte> memory, Pins how = Pins::read_write);
  Answer<void> unpin(const std::byte* memory);

  // ---- For what is enqueued
  // Finds memory that may be read or written from the first of `rows` to the end of the last; refuses any other.
  Answer<std::byte*> reach(const char* what, const std::byte* begin, size_t bytes, size_t rows, size_t pitch) const;
  Answer<std::atomic<uint64_t>*> word_at(const std::byte* word) const;

 private:
  Gpu& gpu_;
  GpuContext& context_;
};

// The place of the GPU's memory at an address, for the thread of a queue, or for a test. Null for memory that it does not have.
std::byte* real(const void* address);

}  // namespace fccl::core::simulated
