// IssuedTransfers: sends and receives of one communicator that a call of it issues together, and waits for.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "operations/issued_transfer.h"

namespace fccl {

// Owned by a communicator; used by the thread that issues its calls, inside of one. Keeps the room of the largest group that
// there was, so the next one allocates nothing. After a failure it is empty again.
class IssuedTransfers {
 public:
  void add(const IssuedTransfer::Around& around, const TransferEnd& transfer);
  // Issues and starts all, and returns when all have ended, with the first failure.
  Result<void> run(bool oversubscribed);

 private:
  // It does not move, and is made anew for each group.
  using Place = std::unique_ptr<std::optional<IssuedTransfer>>;

  IssuedTransfer& at(size_t place) { return **places_[place]; }
  void start_all(bool oversubscribed);
  Result<void> run_in_rounds(bool oversubscribed);

  std::vector<Place> places_;
  size_t used_ = 0;
};

}  // namespace fccl
