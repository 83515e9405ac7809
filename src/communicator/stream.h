// Host streams: queues of operations and host functions that the process's one worker thread serves.
#pragma once

#include <deque>
#include <memory>
#include <variant>

#include "communicator/operation.h"

namespace fccl {

class Worker;

// Items run in order, one after the other; items of different streams run side by side. Owned by whoever created it, the user
// or a communicator. Any thread may call; a failed operation is remembered and later items still run.
class Stream {
 public:
  Stream();
  // Waits until the stream is empty.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void enqueue(std::unique_ptr<Operation> operation);
  void enqueue(fcclHostFunc_t function, void* user_data);
  bool is_empty() const;
  // The first failure of an operation on this stream so far.
  Result<void> result() const;
  Result<void> synchronize();

 private:
  friend class Worker;
  struct HostFunction {
    fcclHostFunc_t function;
    void* user_data;
  };
  using Item = std::variant<std::unique_ptr<Operation>, HostFunction>;

  Worker* worker_;
  std::deque<Item> items_;  // guarded by the worker's mutex; the first item is the worker's alone
  Result<void> result_;     // guarded likewise
};

}  // namespace fccl
