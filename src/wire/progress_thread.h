// ProgressThread: polls an endpoint when no other thread does, so that a rank that computes does not stall its peers.
#pragma once

#include <atomic>
#include <thread>

#include "base/result.h"

namespace fccl::core {

class Endpoint;

// The endpoint owns it. It sleeps for longer and longer while there is nothing to do, or while others poll.
class ProgressThread {
 public:
  ~ProgressThread() { stop(); }

  // Starts the thread; later calls find it running. Errors: fcclSystemError.
  Result<void> start(Endpoint& endpoint);
  // Waits for the thread, at most one of its sleeps.
  void stop();

 private:
  void run(Endpoint& endpoint);

  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace fccl::core
