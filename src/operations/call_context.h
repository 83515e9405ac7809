// CallContext: the parts of a communicator that its calls use.
#pragma once

#include <array>
#include <chrono>

#include "segment/lane_id.h"

namespace fccl::core {

class Statistics;
struct Control;
struct LaneQueue;

// References that the operations of one communicator share.
struct CallContext {
  Control& control;
  Statistics& statistics;
  bool oversubscribed;  // more ranks than cores on this host
  const std::array<LaneQueue, kLanes>& lanes;
  std::chrono::microseconds nap{0};  // sleep of a blocking call between its polls
};

}  // namespace fccl::core
