// IssuedGroup: operations that are issued together, so that each gets on while the others wait.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "operations/advance.h"
#include "operations/issued_transfer.h"

namespace fccl {

class IssuedCall;
class IssuedTransfers;

// Filled by the thread that issues, then run by it or, as an item of a stream, advanced by the worker. The failure of one ends
// that one alone: the others go on to their own ends.
class IssuedGroup {
 public:
  IssuedGroup();
  ~IssuedGroup();
  IssuedGroup(const IssuedGroup&) = delete;
  IssuedGroup& operator=(const IssuedGroup&) = delete;

  void add(std::unique_ptr<IssuedCall> call);
  void add(const IssuedTransfer::Around& around, const TransferEnd& transfer);
  // Whether a thread that waits for it keeps others from a processor.
  void wait_as(bool oversubscribed) { oversubscribed_ |= oversubscribed; }
  bool is_empty() const { return calls_.empty() && transfers_.empty(); }

  // Returns when all have ended, with the first failure.
  Result<void> run();
  // One step of each that has not ended.
  Result<Advance> advance();

 private:
  bool advance_calls();
  bool advance_transfers();
  bool keep(const Result<Advance>& progress, bool& moved);

  std::vector<std::unique_ptr<IssuedCall>> calls_;
  std::vector<std::unique_ptr<IssuedTransfers>> transfers_;  // of each communicator
  Result<void> result_;
  bool oversubscribed_ = false;
};

}  // namespace fccl
