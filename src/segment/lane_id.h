// LaneId: tells the lanes of a communicator apart.
#pragma once

#include <array>

namespace fccl::core {

// A communicator has several lanes, each with its own sequence, boxes and gather slots, so that a gather and a reduction can
// run at the same time. The collective decides the lane: one that needs pair slots takes the pair lane.
enum LaneId : int { kGatherLane = 0, kPairLane = 1, kLanes = 2 };

// The index after the lanes of collectives, at which a rank publishes the rank that its sends and receives wait for.
inline constexpr LaneId kTransferLane = kLanes;

// Lists all lanes, `first` before the others.
inline std::array<LaneId, kLanes> lanes_from(LaneId first) {
  std::array<LaneId, kLanes> lanes{};
  for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<LaneId>((first + i) % kLanes);
  return lanes;
}

}  // namespace fccl::core
