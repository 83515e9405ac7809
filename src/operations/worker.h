// Worker: the one thread of a process that advances all outstanding operations of all host streams in turn.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "operations/stream.h"
#include "os/clock.h"

namespace fccl::core {

// A process has one, which lives as long as the process; its thread lives as long as there are streams. Any thread may call. It
// sleeps when nothing is outstanding, and for longer and longer, up to two milliseconds, when nothing moves. Waking it costs
// more than a short call. So a thread that issues a short call, or waits for a stream, serves that stream itself, and the
// worker leaves it alone for that time.
class Worker {
 public:
  static Worker& of_process();

  Result<void> add(Stream& stream);
  // The stream must be empty and stay so.
  void remove(Stream& stream);
  void enqueue(Stream& stream, std::unique_ptr<StreamItem> item);
  // Waits until the first `position` items ever issued on the stream are done, or until the deadline: returns true if they are.
  bool wait_for(Stream& stream, uint64_t position, Deadline deadline);
  std::mutex& mutex() { return mutex_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  // Limits for a thread that serves a stream while it waits: its deadline, and how long it stays while nothing moves.
  struct Limits {
    Deadline deadline;
    std::chrono::microseconds patience;
  };
  void serve();
  bool advance_each(std::span<Stream* const> busy, Lock& lock);
  bool advance(Stream& stream, Lock& lock);
  void try_at_once(Stream& stream, Lock& lock);
  void serve_here(Stream& stream, uint64_t position, const Limits& limits, Lock& lock);
  std::chrono::microseconds shortest_yielding() const;
  void back_off(Lock& lock, Clock::duration idle);

  std::mutex mutex_;
  std::condition_variable work_;   // an item was added, or a stream removed or left by another thread
  std::condition_variable ended_;  // an item was finished
  std::vector<Stream*> streams_;
  bool running_ = false;
};

}  // namespace fccl::core
