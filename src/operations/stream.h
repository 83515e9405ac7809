// Host streams: queues of operations and host functions that the process's one worker thread serves.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <variant>

#include "base/result.h"
#include "system/clock.h"

namespace fccl {

class BouncedCall;
class IssuedCall;
class IssuedGroup;
class Worker;

// Items run in order, one after the other; items of different streams run side by side. Owned by whoever created it, the user
// or a communicator. Any thread may call; a failed item is remembered and later items still run. In a fork of the process that
// made it only check_usable, query, synchronize and the destructor may be called, and say so.
class Stream {
 public:
  struct HostFunction {
    fcclHostFunc_t function;
    void* user_data;
  };
  using Item =
      std::variant<std::unique_ptr<IssuedCall>, std::unique_ptr<BouncedCall>, std::unique_ptr<IssuedGroup>, HostFunction>;

  // Error: fcclSystemError, if the worker cannot be started.
  static Result<std::unique_ptr<Stream>> make();
  // The stream at this address, of this process or of the one that it is a fork of; null if there is none. What lies there is
  // not read: it may be a stream of CUDA, or nothing.
  static Stream* find(const void* address);
  // Waits until the stream is empty.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Result<void> check_usable() const;
  void enqueue(Item item);
  // The first failure of an item so far; without one, whether the stream is empty.
  Result<bool> query() const;
  // How many items have been issued so far.
  Result<uint64_t> position() const;
  // Both wait, and serve the stream meanwhile, host functions included: the first for all items that were issued before it, the
  // second for so many of all that ever were, which at the deadline need not be done: then it says so. Else the first failure
  // of an item so far.
  Result<void> synchronize();
  Result<bool> synchronize_to(uint64_t position, Deadline deadline);

 private:
  friend class Worker;
  Stream();
  bool is_empty() const;

  Worker* worker_;
  // Guarded by the worker's mutex; while is_served_ the first item is the thread's that serves the stream, alone.
  std::deque<Item> items_;
  Result<void> result_;
  uint64_t issued_ = 0;
  uint64_t finished_ = 0;
  bool is_served_ = false;
};

}  // namespace fccl
