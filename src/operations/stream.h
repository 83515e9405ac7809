// Host streams: queues of operations and host functions that the process's worker thread serves.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/result.h"
#include "os/clock.h"

namespace fccl::core {

class StreamItem;
class Worker;

// Items of a stream run in order, one at a time; items of different streams run side by side. The user or the communicator that
// made it owns it. Any thread may call; a failed item is remembered and later items still run. In a fork of the process that
// made it only check_usable, query, synchronize and the destructor may be called; they report the fork.
class Stream {
 public:
  // Error: fcclSystemError if the worker cannot be started.
  static Result<std::unique_ptr<Stream>> make();
  // Returns the stream at this address, of this process or of the one that it is a fork of; null if the address is not a
  // stream. It never dereferences the address: a CUDA stream, or nothing, may lie there.
  static Stream* find(const void* address);
  // Waits until the stream is empty.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Result<void> check_usable() const;
  void enqueue(std::unique_ptr<StreamItem> item);
  // Returns the first failure of an item so far; without one, true if the stream is empty.
  Result<bool> query() const;
  // Returns how many items have been issued so far.
  Result<uint64_t> position() const;
  // Both wait, and in the wait serve the stream, including its host functions: synchronize for all items that were issued
  // before it, synchronize_to for the first `position` items ever issued. At the deadline it returns false if these are not
  // done. Otherwise both return the first failure of an item so far.
  Result<void> synchronize();
  Result<bool> synchronize_to(uint64_t position, Deadline deadline);

 private:
  friend class Worker;
  Stream();
  bool is_empty() const;

  Worker* worker_;
  // The worker's mutex guards them; while is_served_ is set the first item belongs to the thread that serves the stream.
  std::deque<std::unique_ptr<StreamItem>> items_;
  Result<void> result_;
  uint64_t issued_ = 0;
  uint64_t finished_ = 0;
  bool is_served_ = false;
};

}  // namespace fccl::core
