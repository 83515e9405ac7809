// SimulatedUser: a GpuUser of a simulated GPU.
#pragma once

#include "devices/gpu_user.h"
#include "devices/simulated_gpu.h"

namespace fccl::core::simulated {

class SimulatedUser : public GpuUser {
 public:
  explicit SimulatedUser(const GpuOptions& options) : gpu_(options) {}

  Device& device() override { return gpu_; }
  std::byte* allocate(MemoryPlace place, size_t bytes) override { return gpu_.allocate(place, bytes); }
  void free(std::byte* memory, MemoryPlace /*place*/) override { gpu_.free(memory); }
  void write(std::byte* to, std::span<const std::byte> from) override { gpu_.write(to, from); }
  void read(const std::byte* from, std::span<std::byte> to) override { gpu_.read(from, to); }
  Queue make_stream() override { return gpu_.make_user_queue(); }
  void drop_stream(Queue stream) override {
    const Device::Use use(gpu_);
    gpu_.drop(stream);
  }
  void begin_capture(Queue stream) override { gpu_.begin_capture(stream); }
  void end_capture(Queue stream) override { gpu_.end_capture(stream); }

 private:
  SimulatedGpu gpu_;
};

}  // namespace fccl::core::simulated
