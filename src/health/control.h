// Control: the state of a communicator besides its data: its ranks, their calls, its first failure, who lives, and its waits.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "health/failure_board.h"
#include "health/known_calls.h"
#include "health/liveness.h"
#include "health/peers.h"
#include "health/wait_judge.h"

namespace fccl::core {

// A communicator and its link own it together, and the link may live longer. Any thread may use the members, also after a
// failure.
struct Control {
  Control(std::string name, int rank, std::vector<Peer> all, std::shared_ptr<Segment> segment)
      : peers(rank, std::move(all), std::move(segment)),
        calls(std::move(name), peers),
        failures(peers.segment(), peers[rank].local),
        liveness(peers, calls, failures),
        judge(peers, calls, liveness, failures) {}

  const Peers peers;
  KnownCalls calls;
  FailureBoard failures;
  Liveness liveness;
  WaitJudge judge;
};

}  // namespace fccl::core
