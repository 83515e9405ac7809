// IssuedGroup: operations that are issued together, so that each advances while the others wait.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "operations/stream_item.h"
#include "transfers/issued_transfer.h"

namespace fccl::core {

class IssuedCall;
class IssuedTransfers;

// The thread that issues fills it, then runs it or puts it on a stream, where the worker advances it. A failure ends only the
// operation that failed: the others run to their own ends.
class IssuedGroup final : public StreamItem {
 public:
  IssuedGroup();
  ~IssuedGroup() override;
  IssuedGroup(const IssuedGroup&) = delete;
  IssuedGroup& operator=(const IssuedGroup&) = delete;

  void add(std::unique_ptr<IssuedCall> call);
  // For a call on GPU memory that runs as a whole in host memory: counts what a processor copies.
  void add_staged(std::unique_ptr<IssuedCall> call);
  void add(const IssuedTransfer::Around& around, const TransferEnd& transfer);
  // Says whether a thread that waits for it would keep others from a processor.
  void wait_as(bool oversubscribed) { oversubscribed_ |= oversubscribed; }
  bool is_empty() const { return calls_.empty() && transfers_.empty(); }

  // Returns once all have ended, with the first failure.
  Result<void> run();
  // Advances each operation that has not ended by one step.
  Result<Advance> advance() override;

 private:
  struct Issued {
    std::unique_ptr<IssuedCall> call;
    bool is_staged = false;
  };

  bool advance_calls();
  bool advance_transfers();
  bool keep(const Result<Advance>& progress, bool& moved);

  std::vector<Issued> calls_;
  std::vector<std::unique_ptr<IssuedTransfers>> transfers_;  // one per communicator
  Result<void> result_;
  bool oversubscribed_ = false;
};

}  // namespace fccl::core
