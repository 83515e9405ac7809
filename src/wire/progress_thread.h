// ProgressThread: polls an endpoint when nobody else does, so that a rank that computes does not stall its peers.
#pragma once

#include <atomic>
#include <thread>

#include "base/result.h"

namespace fccl {

class Endpoint;

// Owned by the endpoint. Sleeps longer and longer while there is nothing to do or others poll.
class ProgressThread {
 public:
  ~ProgressThread() { stop(); }

  // Once; later calls find it running. Errors: fcclSystemError.
  Result<void> start(Endpoint& endpoint);
  // Waits for the thread, at most one of its sleeps.
  void stop();

 private:
  void run(Endpoint& endpoint);

  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace fccl
