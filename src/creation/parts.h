// Parts: what a communicator is made of, and how a rank leaves it.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>

#include "creation/init_cost.h"
#include "creation/meeting_places.h"
#include "operations/control.h"
#include "operations/issued_call.h"
#include "operations/issued_transfer.h"
#include "operations/statistics.h"
#include "system/forks.h"

namespace fccl {

class Columns;
class Endpoint;
class HostLink;

// Filled by a Creation, then owned by a Communicator; one thread at a time. Destroyed, also where the creation has failed, they
// tell the peers that this rank has left; no call may be under way then. In a fork of the process that made them they touch
// nothing that is shared.
struct Parts {
  Parts(std::unique_ptr<Columns> all_columns, std::shared_ptr<Control> of_rank, const std::shared_ptr<Segment>& segment,
        std::chrono::milliseconds wait_at_most);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  CallContext around() { return {*control, statistics, oversubscribed, lanes}; }
  IssuedTransfer::Around around_transfers() { return {*control, transfers, timeout}; }
  // Whether this is the process that made them.
  bool is_own() const { return forks_ == forks(); }

  std::unique_ptr<Columns> columns;
  std::shared_ptr<Endpoint> endpoint;  // null without a column between hosts
  std::shared_ptr<Control> control;    // the link may outlive this
  std::array<LaneQueue, kLanes> lanes;
  Statistics statistics;
  TransferLane transfers;
  std::unique_ptr<HostLink> link;       // of the leader of a host
  std::optional<MeetingPlaces> places;  // between hosts
  std::chrono::milliseconds timeout;
  uint64_t number = kEarliestNumber;  // of the next call
  int rails = 0;                      // of each host, between hosts
  InitCost cost;
  bool oversubscribed = true;  // more ranks than processors; known once all ranks have joined

 private:
  void leave_network_alone();

  unsigned forks_;  // of the process when these were made
};

}  // namespace fccl
