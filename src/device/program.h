// Program: all that one call puts on its lane's queue, from the user's stream and back to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "device/lane.h"
#include "device/sub_calls.h"

namespace fccl {

// In the order of the queue, with two buffers, so that the copy into one and the work on the other overlap:
//   await the user's stream; copy in 0; write ready 0
//   for each sub-call i: copy in i+1; write ready i+1; wait for finished i; copy out i
//   write drained; the user's stream awaits the queue
// Lives during a call on the thread that issues it. Whoever called fork calls join, whatever failed between: the user's stream
// must not go on beside copies from and to the user's memory. A program that stops half way leaves nothing that waits for ever,
// once `finished` has been released for good.
class Program {
 public:
  // Returns when the queue has room for so many entries.
  using AwaitRoom = std::function<Result<void>(size_t entries)>;

  // `scalar`: a factor in memory of the GPU, null without one.
  Program(DeviceLane& lane, const SubCalls& calls, const void* scalar);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Of its first sub-call, on the lane.
  uint64_t first_number() const { return first_number_; }
  // For how many entries there must be room before it begins: all, if the queue can have as many.
  size_t entries_to_begin() const;
  Result<void> fork(Queue user) { return lane_.fork(user); }
  // Waits for room between its portions if it has more entries than the queue takes.
  Result<void> enqueue(const AwaitRoom& await_room);
  Result<void> join(Queue user);

 private:
  std::byte* device_buffer(uint64_t part) const { return lane_.device_address(lane_.buffer(first_number_ + part)); }
  size_t entries() const;
  Result<void> bring_in(uint64_t part);
  Result<void> take_out(uint64_t part);
  Result<void> copy(const Copies& copies);
  Result<void> make_room(size_t entries);

  DeviceLane& lane_;
  const SubCalls& calls_;
  const void* scalar_;
  uint64_t first_number_;
  bool fits_;  // into the queue, all at once
  const AwaitRoom* await_room_ = nullptr;
};

}  // namespace fccl
