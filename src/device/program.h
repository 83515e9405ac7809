// Program: the entries of one call on its lane's queue, between the fork from the user's stream and the call's end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/lane.h"
#include "device/sub_calls.h"

namespace fccl::core {

// Entries of a program beside its copies and words: the waits for the user's stream and for an earlier call, the copy of the
// factor, the write of `drained`, the lane's mark at its end and the user's.
inline constexpr size_t kEntriesOfEnds = 6;

// The entries that a write of `drained` takes at most: sums that are ahead are joined before it, and wait for the user's stream
// anew behind it.
inline constexpr size_t kEntriesToMark = 4;

// The room that a program of so many entries takes in its lane's queue. A program that does not fit waits between its portions.
class QueueRoom {
 public:
  QueueRoom(DeviceLane& lane, size_t entries) : lane_(lane), entries_(entries), fits_(entries < lane.queue_entries()) {}
  // The room that the caller must await before the fork: for all entries, if the queue can hold them.
  size_t to_begin() const { return fits_ ? entries_ : lane_.queue_entries() / 2; }
  // Precedes the next entries. Writes `drained` now and then, so that the thread that waits for room sees progress.
  Result<void> make(size_t entries, const AwaitRoom& await_room);

 private:
  DeviceLane& lane_;
  size_t entries_;
  bool fits_;
};

// The order of entries. Two buffers let the copy into one overlap with the work on the other.
//   copy in 0; write ready 0
//   for each sub-call i: copy in i+1; write ready i+1; wait for finished i; copy out i
//   write drained
// Lives on the issuing thread during the call. The caller forks before enqueue. It calls end and lets the user continue behind
// the queue even after a failure, because nobody may use the user's memory beside the copies from and to it. A program that
// stops half way leaves no endless wait once release_permanently was called.
class Program {
 public:
  // `scalar`: a factor in GPU memory; null if the call has no factor.
  Program(DeviceLane& lane, const SubCalls& calls, const void* scalar);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The lane's number of its first sub-call.
  uint64_t first_number() const { return first_number_; }
  size_t entries_to_begin() const { return room_.to_begin(); }
  // Enqueues the program. Waits for room in between if it has more entries than the queue holds.
  Result<void> enqueue(const AwaitRoom& await_room);
  void end() { lane_.end_program(first_number_); }

 private:
  std::byte* device_buffer(uint64_t part) const {
    return lane_.memory().device_address(lane_.memory().buffer(first_number_ + part));
  }
  size_t entries() const;
  Result<void> bring_in(uint64_t part);
  Result<void> take_out(uint64_t part);
  Result<void> copy(const Copies& copies);
  Result<void> make_room(size_t entries) { return room_.make(entries, *await_room_); }

  DeviceLane& lane_;
  const SubCalls& calls_;
  const void* scalar_;
  uint64_t first_number_;
  QueueRoom room_;
  const AwaitRoom* await_room_ = nullptr;
};

}  // namespace fccl::core
