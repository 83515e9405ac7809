// IssuedTransfers: sends and receives of one communicator that are issued together.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "transfers/issued_transfer.h"

namespace fccl::core {

// The thread that issues fills it. One thread then advances it until it is done: it is empty then, even after a failure. It
// keeps the room of its largest group, so the next one allocates nothing. A failure ends only the transfer that failed: the
// others run to their own ends. The time of a group grows linearly with its size.
class IssuedTransfers {
 public:
  IssuedTransfers() = default;
  IssuedTransfers(const IssuedTransfers&) = delete;
  IssuedTransfers& operator=(const IssuedTransfers&) = delete;

  // All transfers must be of one communicator. The first step starts them.
  void add(const IssuedTransfer::Around& around, const TransferEnd& transfer);
  // Adds a transfer that starts later, but has its place in its order from now on.
  void queue(const IssuedTransfer::Around& around, const TransferEnd& transfer);
  // Issues and starts all, and returns once all have ended, with the first failure.
  Result<void> run(bool oversubscribed);
  // Advances all as far as one step goes without waiting. Returns the first failure once all have ended.
  Result<Advance> advance();
  size_t size() const { return used_; }
  TransferLane& lane() const { return (*places_.front())->lane(); }

 private:
  // The memory of a transfer never moves; each group makes a new transfer in it.
  using Place = std::unique_ptr<std::optional<IssuedTransfer>>;

  IssuedTransfer& at(size_t place) { return **places_[place]; }
  bool is_look_due(bool moved);
  bool look_at_all();
  bool is_first_at(int rank);
  Result<Advance> finish();

  std::vector<Place> places_;
  size_t used_ = 0;
  TransfersProgress progress_;
  Result<void> result_;
  uint64_t seen_moves_ = 0;
  bool all_started_ = false;
  bool has_warned_ = false;
  int steps_ = 0;
  Clock::time_point next_look_{};
  std::vector<bool> judged_;  // by 1 + the rank: this look has judged a wait for it
};

}  // namespace fccl::core
