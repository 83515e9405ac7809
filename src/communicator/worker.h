// Worker: the one thread of a process that resumes all outstanding operations of all host streams in turn.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "communicator/stream.h"

namespace fccl {

// One per process; lives as long as the process, its thread as long as there are streams. Any thread may call. It sleeps when
// nothing is outstanding, and backs off to short sleeps when nothing moves.
class Worker {
 public:
  static Worker& of_process();
  // Whether the caller is the worker's thread, that is, inside a host function, where waiting for the worker would never end.
  static bool is_this_thread();

  void add(Stream& stream);
  // The stream must be empty and stay so.
  void remove(Stream& stream);
  void enqueue(Stream& stream, Stream::Item item);
  // Waits until `done`, which is asked under the worker's mutex after every finished item.
  void wait_until(const std::function<bool()>& done);
  std::mutex& mutex() { return mutex_; }

 private:
  struct Round {
    bool moved = false;
    bool finished = false;
  };
  void serve();
  bool advance(Stream& stream, Round& round);
  void back_off(std::unique_lock<std::mutex>& lock, int idle_rounds);

  std::mutex mutex_;
  std::condition_variable work_;   // an item or stream was added
  std::condition_variable ended_;  // an item was finished
  std::vector<Stream*> streams_;
  bool running_ = false;
};

}  // namespace fccl
