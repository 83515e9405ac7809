// Creation: brings the ranks of a communicator together, from a unique id to the state of a communicator.
#pragma once

#include <memory>
#include <optional>

#include "bootstrap/bootstrap.h"
#include "creation/create_options.h"
#include "operations/init_cost.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

class InitCalls;
class PeerMemory;
class Segment;
struct CommunicatorState;

// Takes one rank from the roster to its state. It lives while that is made, on one thread; all its waits have one limit. An
// error is final: destroy the creation, which makes the rank leave.
class Creation {
 public:
  Creation(Joined& joined, const CreateOptions& options, const WaitLimit& limit);
  ~Creation();
  Creation(const Creation&) = delete;
  Creation& operator=(const Creation&) = delete;

  // Returns when every rank has its state, or with the first failure.
  Result<std::unique_ptr<CommunicatorState>> make();

 private:
  Result<void> share_memory();
  Result<void> await_ranks();
  Result<void> choose_ways(InitCalls& calls);
  void read_peers(const std::shared_ptr<const PeerMemory>& memory, std::optional<double> gain);
  void map_peers();

  Joined& joined_;
  const CreateOptions& options_;
  const WaitLimit& limit_;
  StepClock steps_;
  std::shared_ptr<Segment> segment_;
  std::unique_ptr<PeerMemory> memory_;
  std::unique_ptr<CommunicatorState> state_;
};

// Makes the request with which a rank that creates by these options joins.
JoinRequest join_request(const UniqueId& id, int rank, int ranks, const CreateOptions& options);
// Joins and creates. A rank that fails tells all ranks, and returns the first failing rank's reason.
Result<std::unique_ptr<CommunicatorState>> create_state(const JoinRequest& request, const CreateOptions& options,
                                                        const CancelCheck& cancel_check = {});

}  // namespace fccl::core
