// DeviceLane: what a lane of a communicator has on its GPU: a queue, host memory that both reach, and the words between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "device/device.h"
#include "device/words.h"

namespace fccl {

struct DeviceLaneShape {
  size_t buffer_bytes = 0;    // a multiple of a page
  int buffers = 1;            // of which sub-calls take turns
  size_t queue_entries = 32;  // the most that may be outstanding
};

// Made and destroyed under a Use, as set-up functions are; destroyed only when the queue is idle, else retired. The thread that
// issues calls enqueues and asks for room; the worker reads `ready` and releases `finished`. After a failure whoever owns it
// releases `finished` for good. Three words:
//   ready     by the GPU: the sub-calls whose input is in its buffer
//   finished  by the host: the sub-calls whose output is in its buffer
//   drained   by the GPU: the entries of the queue that are done
class DeviceLane {
 public:
  static Result<std::unique_ptr<DeviceLane>> make(std::shared_ptr<Device> device, const DeviceLaneShape& shape);
  ~DeviceLane();
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  Queue queue() const { return queue_; }
  size_t queue_entries() const { return shape_.queue_entries; }
  // Of a sub-call, counted over all calls of the lane.
  std::byte* buffer(uint64_t number) const;
  std::byte* device_address(const void* host) const { return pinned_->device_address(host); }
  DeviceWord& ready() const { return words_->ready; }
  DeviceWord& finished() const { return words_->finished; }
  // The factor that a program has brought from the GPU.
  Scalar scalar(fcclDataType_t dtype) const;

  // ---- On the thread that issues calls
  // Gives numbers to the sub-calls of a call: the first one's.
  uint64_t take_numbers(uint64_t sub_calls);
  size_t outstanding() const { return enqueued_ - words_->drained.load(std::memory_order_acquire); }
  bool has_room(size_t entries) const { return outstanding() + entries <= shape_.queue_entries; }
  // Entries that no write of `drained` follows yet.
  size_t unmarked() const { return enqueued_ - marked_; }
  Result<void> copy(const Copy& copy);
  Result<void> copy_scalar(const void* from, fcclDataType_t dtype);
  // The same by this thread, for a factor in host memory.
  void copy_scalar_on_host(const void* from, fcclDataType_t dtype);
  Result<void> write_ready(uint64_t number);
  Result<void> write_ready_and_await(uint64_t ready, uint64_t finished);
  Result<void> await_finished(uint64_t number);
  // Lets the host see that all entries up to here, this one included, are done.
  Result<void> write_drained();
  // The queue begins behind what is on the user's stream now; the stream goes on behind what is on the queue now.
  Result<void> fork(Queue user);
  Result<void> join(Queue user);
  // Ends the enqueueing of a program that began with this sub-call.
  void end_program(uint64_t first_number);
  // The same of a call without sub-calls of the worker's, whose copies out are on the queue.
  Result<void> end_copies();

  // The queue was seen to be idle.
  void see_idle();

  // ---- While no thread issues calls
  // Whatever waits for `finished`, now or later, goes on.
  void release_for_good();
  // Whether the GPU has done all that the host can see it do.
  bool is_drained() const;
  // Whether the first program that is not done has begun.
  bool has_begun();

 private:
  struct Words {
    alignas(64) DeviceWord ready{0};
    alignas(64) DeviceWord finished{0};
    alignas(64) DeviceWord drained{0};
    alignas(64) Scalar scalar;
  };
  struct Program {
    uint64_t first_number;
    uint64_t drained;  // once it is done
  };

  DeviceLane(std::shared_ptr<Device> device, const DeviceLaneShape& shape);
  Result<void> reserve();
  Result<void> set_up();
  Result<void> words(std::span<const WordOperation> operations);
  WordOperation write(DeviceWord& word, uint64_t value) const;
  WordOperation wait(DeviceWord& word, uint64_t value) const;
  size_t memory_bytes() const;

  std::shared_ptr<Device> device_;
  DeviceLaneShape shape_;
  std::byte* memory_ = nullptr;  // the words' page, then the buffers
  std::unique_ptr<PinnedMemory> pinned_;
  Words* words_ = nullptr;
  Queue queue_;
  Mark forked_;
  Mark joined_;
  uint64_t enqueued_ = 0;  // entries
  uint64_t marked_ = 0;    // of these, with the last write of `drained`
  uint64_t numbers_ = 0;
  std::vector<Program> programs_;  // a ring of those that may not be done
  uint64_t oldest_ = 0;
  uint64_t newest_ = 0;
};

}  // namespace fccl
