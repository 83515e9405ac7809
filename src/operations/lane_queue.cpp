// Makes a lane for all calls of one kind.
#include "operations/lane_queue.h"

#include <utility>

#include "health/call_numbers.h"
#include "hierarchical/hierarchical_lane.h"

namespace fccl::core {

LaneQueue::LaneQueue(std::shared_ptr<Segment> segment, LaneId id, int local, std::vector<int> ranks)
    : lane(std::move(segment), id, local, std::move(ranks), static_cast<uint32_t>(kFirstNumber)) {}

LaneQueue::~LaneQueue() = default;

int LaneQueue::ranks() const { return hierarchical ? hierarchical->columns.ranks() : lane.ranks(); }

}  // namespace fccl::core
