// GpuUser: what a program does with a GPU beside the library's Device: memory, streams, captures.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "device/device.h"

namespace fccl::core {

// A user of one GPU; one thread at a time calls it, with or without a Use. A call that fails ends the test.
class GpuUser {
 public:
  GpuUser() = default;
  GpuUser(const GpuUser&) = delete;
  GpuUser& operator=(const GpuUser&) = delete;
  virtual ~GpuUser() = default;

  virtual Device& device() = 0;
  // this_device, managed or pinned_host.
  virtual std::byte* allocate(MemoryPlace place, size_t bytes) = 0;
  // Not while anything of this GPU waits for the caller.
  virtual void free(std::byte* memory, MemoryPlace place) = 0;
  // While no queue uses the memory, and done on return.
  virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void read(const std::byte* from, std::span<std::byte> to) = 0;
  virtual Queue make_stream() = 0;
  virtual void drop_stream(Queue stream) = 0;
  virtual void begin_capture(Queue stream) = 0;
  virtual void end_capture(Queue stream) = 0;
};

}  // namespace fccl::core
