// Ranks of one segment, all in this process, for tests of what a rank knows of its peers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "health/call_numbers.h"
#include "health/control.h"
#include "host/task.h"

namespace fccl::core {

// Three ranks of one host, whose calls are AllGathers.
class RanksOfOneHost : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  RanksOfOneHost() {
    const SegmentShape shape{kRanks, 64, 64};
    segment = *Segment::map(*Segment::make(shape), shape);
    segment->initialise(static_cast<uint32_t>(kFirstNumber));
    for (int rank = 0; rank < kRanks; ++rank) controls.push_back(std::make_unique<Control>("", rank, all_peers(), segment));
    control = controls.front().get();
  }

  static std::vector<Peer> all_peers() {
    std::vector<Peer> peers;
    for (int rank = 0; rank < kRanks; ++rank)
      peers.push_back({{rank, getpid(), {}, "here", {}, {}}, *ProcessWatch::of(getpid()), rank});
    return peers;
  }

  std::shared_ptr<Segment> segment;
  std::vector<std::unique_ptr<Control>> controls;
  Control* control = nullptr;  // that of rank 0
  const Task task{{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 4096}}, kFirstNumber};
  const Task later{task.call, kFirstNumber + 5};
};

}  // namespace fccl::core
