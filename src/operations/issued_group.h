// IssuedGroup: operations that are issued together, so that each gets on while the others wait.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "operations/advance.h"

namespace fccl {

class IssuedCall;
class IssuedTransfer;

// Filled by the thread that issues, then run by it or, as an item of a stream, advanced by the worker. The failure of one ends
// that one alone: the others go on to their own ends.
class IssuedGroup {
 public:
  // `runs_here`: the thread that issues is to run it, so transfers need not wait for that to start.
  explicit IssuedGroup(bool runs_here = false);
  ~IssuedGroup();
  IssuedGroup(const IssuedGroup&) = delete;
  IssuedGroup& operator=(const IssuedGroup&) = delete;

  void add(std::unique_ptr<IssuedCall> call);
  void add(std::unique_ptr<IssuedTransfer> transfer);
  // Whether a thread that waits for it keeps others from a processor.
  void wait_as(bool oversubscribed) { oversubscribed_ |= oversubscribed; }
  bool is_empty() const { return calls_.empty() && transfers_.empty(); }

  // Returns when all have ended, with the first failure.
  Result<void> run();
  // One step of each that has not ended.
  Result<Advance> advance();

 private:
  void await_transfers();
  template <class Operation>
  bool advance_all(std::vector<std::unique_ptr<Operation>>& operations);

  std::vector<std::unique_ptr<IssuedCall>> calls_;
  std::vector<std::unique_ptr<IssuedTransfer>> transfers_;
  Result<void> result_;
  bool runs_here_;
  bool oversubscribed_ = false;
};

}  // namespace fccl
