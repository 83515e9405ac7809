// KnownCalls: what a rank knows of its own calls and of its peers' calls, and how an error describes them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/transfer.h"
#include "segment/lane_board.h"

namespace fccl::core {

class Peers;
struct OtherCounts;
struct Task;

// A Control owns it. Any thread may call, also after a failure. It reads what the ranks of this host record in shared memory,
// and raises no failure.
class KnownCalls {
 public:
  // `name`: the communicator's name, or "".
  KnownCalls(std::string name, const Peers& peers) : name_(std::move(name)), peers_(peers) {}

  // Tell the peers how far this rank is with its calls on GPU memory.
  void say_issued(uint64_t number);
  void say_begun(LaneId lane, uint64_t number);

  // True if a rank of this host has made the call of this number on another lane than `mine`.
  bool is_on_another_lane(const Task& mine, int rank) const;

  // Returns "AllGather of 4 int8 (call 7) of communicator name".
  std::string describe(const Task& task) const;
  std::string describe(const TransferEnd& transfer) const;
  std::string describe_last_call_of(int rank) const;
  // Returns the last call of a rank: of another host only if a rank has told it.
  std::optional<CallInFull> last_known_of(int rank) const;
  // Takes the last call of a rank of another host, as a rank tells it.
  void hear_of_last_call(int rank, const CallInFull& call);
  // Returns the number of the last call that a rank of this host has made; 0: none.
  uint64_t last_number_of(int rank) const { return last_call_of(rank).number; }
  // Describes how far a rank of this host is with a call on GPU memory; it may have issued the call long before its GPU reaches
  // it.
  std::string describe_way_to(const Task& task, int rank) const;

  // Returns the error that shows two calls that differ. `theirs`: the other call, if the network brought it from another host.
  Error mismatch(const Task& mine, int other, const CallRecord::Value& theirs = {}) const;
  // Returns the error of a block that one rank sends with another length than its receiver expects, as `theirs` says.
  Error other_counts(const Task& mine, const OtherCounts& theirs) const;
  // Returns the error that shows a send and a receive that differ. `mine` is a receive from `source`.
  Error difference(const TransferEnd& mine, int source, const Envelope& theirs) const;

 private:
  CallRecord::Value last_call_of(int rank) const;
  std::string with_name(std::string call) const;
  std::string on_communicator() const;

  std::string name_;
  const Peers& peers_;
  mutable std::mutex mutex_;
  std::map<int, CallInFull> heard_;  // by rank of another host
};

}  // namespace fccl::core
