// LaneMemory: the host memory of a communicator's lane that the GPU and the host both reach: words, a factor, and buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/result.h"
#include "device/device.h"
#include "device/words.h"
#include "kernels/gpu/sum.h"

namespace fccl::core {

// The words of calls by landing slots. Steps are numbered over all such calls of the lane; each word counts them.
struct StepWords {
  alignas(64) DeviceWord done{0};       // the GPU writes how many steps' bytes are in this rank's slots
  alignas(64) DeviceWord taken{0};      // the GPU writes how many steps' bytes it has taken out of all slots
  alignas(64) DeviceWord all_done{0};   // the host writes the least `done` of all ranks
  alignas(64) DeviceWord all_taken{0};  // the host writes the least `taken` of all ranks
};

// A call by landing slots takes one number of a sub-call: `ready` then says that the GPU has reached the call.
struct LaneWords {
  alignas(64) DeviceWord ready{0};     // the GPU writes how many sub-calls have their input in their buffers
  alignas(64) DeviceWord finished{0};  // the host writes how many sub-calls have their output in their buffers
  alignas(64) DeviceWord drained{0};   // the GPU writes how many entries of the queue are done
  alignas(64) Scalar scalar;           // the factor that a program has copied from the GPU
  StepWords steps;
  // The host writes the factor of each rank before the GPU adds their bytes.
  alignas(64) std::array<Scalar, gpu::kMostSources> factors{};
};

// A DeviceLane owns it, and destroys it when its queue is idle. The writer of each word may write it at any time. The buffers
// lie in the process's arena, so that the ranks of this host read each other's in place; if that has no room, in memory of
// their own, which peers copy from.
class LaneMemory {
 public:
  // `buffer_bytes`: of each buffer, a multiple of the page size. A set-up function of the device, as is the destructor.
  static Result<std::unique_ptr<LaneMemory>> make(std::shared_ptr<Device> device, size_t buffer_bytes, int buffers);
  ~LaneMemory();
  LaneMemory(const LaneMemory&) = delete;
  LaneMemory& operator=(const LaneMemory&) = delete;

  LaneWords& words() const { return *words_; }
  // The buffer of a sub-call. Numbers count the sub-calls of all calls of the lane.
  std::byte* buffer(uint64_t number) const;
  std::byte* device_address(const void* host) const;
  Scalar scalar(fcclDataType_t dtype) const;
  // The copy that brings the factor from GPU memory.
  Copy copy_of_scalar(const void* from, fcclDataType_t dtype) const;
  // The operation of the GPU that writes a word, or waits until it has come to a value.
  WordOperation write(DeviceWord& word, uint64_t value) const;
  WordOperation wait(DeviceWord& word, uint64_t value) const;

 private:
  LaneMemory(std::shared_ptr<Device> device, size_t buffer_bytes, int buffers);
  Result<void> reserve_words();
  Result<void> reserve_buffers();
  size_t bytes_of_buffers() const { return static_cast<size_t>(count_) * buffer_bytes_; }

  std::shared_ptr<Device> device_;
  size_t buffer_bytes_;
  int count_;                   // of buffers
  LaneWords* words_ = nullptr;  // in a page of their own
  std::byte* buffers_ = nullptr;
  bool in_arena_ = false;
  std::unique_ptr<PinnedMemory> pinned_words_, pinned_buffers_;
};

}  // namespace fccl::core
