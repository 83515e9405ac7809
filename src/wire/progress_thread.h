// ProgressThread: polls an endpoint when nobody else does, so that a rank that computes does not stall its peers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace fccl {

class Endpoint;

// Owned by the endpoint. Sleeps longer and longer while there is nothing to do or others poll.
class ProgressThread {
 public:
  ~ProgressThread() { stop(); }

  void start(Endpoint& endpoint);
  // Ends its sleep: who polled a lot until now may not go on. Any thread; takes a lock.
  void wake();
  // Waits for the thread, at most one of its polls.
  void stop();

 private:
  void run(Endpoint& endpoint);
  // Whether it was woken before the time had passed; then `stops` is told, too.
  bool sleeps(std::chrono::microseconds time, bool& stops);

  std::mutex mutex_;
  std::condition_variable wakes_;
  bool is_woken_ = false, stops_ = false;  // both behind the mutex
  std::thread thread_;
};

}  // namespace fccl
