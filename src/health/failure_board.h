// FailureBoard: the first failure of a communicator, which any rank may find and which becomes every rank's.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "os/descriptor.h"
#include "segment/segment.h"

namespace fccl::core {

// A Control owns it. Any thread may call. The ranks of this host share the first failure in the segment, and the leader of each
// host carries it to the others. A failure is sticky: nothing replaces or removes it.
class FailureBoard {
 public:
  // `local`: this rank's place among the ranks of this host. The segment must outlive the board.
  FailureBoard(Segment& segment, int local) : segment_(segment), local_(local) {}

  // True if the communicator has failed: costs one load.
  bool has_failed() const { return segment_.failure().first.load(std::memory_order_acquire) != 0; }
  // Returns the communicator's first failure, if it has failed.
  std::optional<Error> first() const;
  // Makes `error` the communicator's first failure unless it has one; returns its first failure.
  Error raise(Error error);
  // Takes a failure that another host reports.
  void hear_of(const Error& error);
  // From now on the metrics of the process count the failure, once this rank sees it. A failure before that belongs to the
  // creation of the communicator, which counts it itself.
  void count_in_metrics() { is_to_count_.store(true, std::memory_order_relaxed); }
  // Returns the text of first() for fcclGetLastError: "" without a failure; valid as long as this object lives.
  const char* text();

  // Sets the event that this rank raises when it has news, so that the leader of its host tells the other hosts.
  void wake_by(Descriptor wake) { wake_ = std::move(wake); }
  const Descriptor& wake() const { return wake_; }
  void wake_leader() const;

 private:
  bool offer(const Error& error);

  Segment& segment_;
  int local_;
  mutable std::atomic<bool> is_to_count_{false};
  Descriptor wake_;
  std::mutex mutex_;
  std::optional<std::string> text_;
};

}  // namespace fccl::core
