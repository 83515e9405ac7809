// Worker: the one thread of a process that resumes all outstanding operations of all host streams in turn.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "operations/stream.h"
#include "system/clock.h"

namespace fccl {

// One per process; lives as long as the process, its thread as long as there are streams. Any thread may call. It sleeps when
// nothing is outstanding, and longer and longer, up to two milliseconds, when nothing moves.
class Worker {
 public:
  static Worker& of_process();
  // Whether the caller is the worker's thread, that is, inside a host function, where waiting for the worker would never end.
  static bool is_this_thread();

  Result<void> add(Stream& stream);
  // The stream must be empty and stay so.
  void remove(Stream& stream);
  void enqueue(Stream& stream, Stream::Item item);
  // Waits until `done`, which is asked under the worker's mutex after every finished item.
  void wait_until(const std::function<bool()>& done);
  std::mutex& mutex() { return mutex_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  void serve();
  bool advance(Stream& stream, Lock& lock);
  static std::chrono::microseconds yielding_of(std::span<Stream* const> idle);
  void back_off(Lock& lock, Clock::duration idle, Clock::duration yielding);

  std::mutex mutex_;
  std::condition_variable work_;   // an item was added or a stream removed
  std::condition_variable ended_;  // an item was finished
  std::vector<Stream*> streams_;
  bool running_ = false;
};

}  // namespace fccl
