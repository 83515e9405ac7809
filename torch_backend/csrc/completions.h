// Runs torch's completions on threads of their own, so that the library's worker never runs code of torch or Python.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace fccl::torch {

// Runs tasks on threads of its own: a future's callbacks, and the release of tensors, which may need Python's lock. A task may
// wait for another one (a callback that waits for a second collective), so no task queues behind a busy thread. Each process
// has one. A fork makes a new one, since it has none of the threads; it is never destroyed. Any thread may call.
class Completions {
 public:
  static Completions& of_process();
  // Makes sure that a thread exists. Throws std::system_error if none can be started.
  void start();
  // Called after start. At the limit of threads a task may wait until another one is done.
  void post(std::function<void()> task);
  // Waits until all tasks are done, but not longer than `limit`, and starts no task from then on: a callback of an ending
  // Python would end the process.
  void close(std::chrono::milliseconds limit);

 private:
  void add_thread();
  void ensure_idle_thread();
  void serve();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable done_;
  std::deque<std::function<void()>> tasks_;
  size_t threads_ = 0;
  size_t ready_ = 0;    // threads that wait for a task, or are about to
  size_t running_ = 0;  // tasks
  bool closed_ = false;
};

}  // namespace fccl::torch
