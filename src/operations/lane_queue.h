// LaneQueue: a lane with the order of its operations.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/lane.h"

namespace fccl::core {

struct HierarchicalLane;

// The one thread that issues gives out tickets, and the thread that has the turn runs operations in their order.
struct LaneQueue {
  Lane lane;
  std::unique_ptr<HierarchicalLane> hierarchical;  // null if all ranks share a host, and until the hosts have met
  std::atomic<uint64_t> issued{0};
  std::atomic<uint64_t> finished{0};

  LaneQueue(std::shared_ptr<Segment> segment, LaneId id, int local, std::vector<int> ranks);
  ~LaneQueue();
  LaneQueue(const LaneQueue&) = delete;
  LaneQueue& operator=(const LaneQueue&) = delete;
  // Returns the number of ranks of all hosts.
  int ranks() const;
  bool is_idle() const { return finished.load(std::memory_order_acquire) == issued.load(std::memory_order_relaxed); }
  // Only one thread issues, so no read-modify-write is needed.
  uint64_t take_tickets(uint64_t count) {
    const uint64_t ticket = issued.load(std::memory_order_relaxed);
    issued.store(ticket + count, std::memory_order_relaxed);
    return ticket;
  }
};

}  // namespace fccl::core
