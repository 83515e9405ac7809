// IssuedTransfers: sends and receives of one communicator that are issued together.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "operations/issued_transfer.h"

namespace fccl {

// Filled by the thread that issues, then advanced by one thread, until it is done: empty again, also after a failure. Keeps the
// room of the largest group that there was, so the next one allocates nothing. The failure of one transfer ends that one alone:
// the others go on to their own ends. The time that a group takes grows with its size, not with the square of it.
class IssuedTransfers {
 public:
  IssuedTransfers() = default;
  IssuedTransfers(const IssuedTransfers&) = delete;
  IssuedTransfers& operator=(const IssuedTransfers&) = delete;

  // All are of one communicator. The first step starts them.
  void add(const IssuedTransfer::Around& around, const TransferEnd& transfer);
  // The same of one that starts later, and has its place among those of its order from now on.
  void queue(const IssuedTransfer::Around& around, const TransferEnd& transfer);
  // Issues and starts all, and returns when all have ended, with the first failure.
  Result<void> run(bool oversubscribed);
  // One step of all, as far as they go without waiting. Fails with the first failure when all have ended.
  Result<Advance> advance();
  size_t size() const { return used_; }
  TransferLane& lane() const { return (*places_.front())->lane(); }

 private:
  // It does not move, and is made anew for each group.
  using Place = std::unique_ptr<std::optional<IssuedTransfer>>;

  IssuedTransfer& at(size_t place) { return **places_[place]; }
  void start_all(bool oversubscribed);
  bool is_look_due(bool moved);
  bool look_at_all();
  bool is_first_at(int rank);
  Result<Advance> finish();

  std::vector<Place> places_;
  size_t used_ = 0;
  TransfersProgress progress_;
  Result<void> result_;
  uint64_t seen_moves_ = 0;
  bool all_have_started_ = false;
  bool has_warned_ = false;
  int steps_ = 0;
  Clock::time_point next_look_{};
  std::vector<bool> judged_;  // by 1 + the rank: whether this look has judged a wait for it
};

}  // namespace fccl
