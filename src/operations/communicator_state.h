// CommunicatorState: everything that a communicator is made of, and how a rank leaves it.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>

#include "bootstrap/bootstrap.h"
#include "bootstrap/meeting_places.h"
#include "health/call_numbers.h"
#include "metrics/statistics.h"
#include "operations/init_cost.h"
#include "operations/lane_queue.h"
#include "os/forks.h"
#include "transfers/issued_transfer.h"
#include "transfers/transfer_lane.h"

namespace fccl::core {

class Columns;
class Endpoint;
class HostLink;
struct CallContext;
struct Control;

// Filled by a Creation, then owned by a Communicator; one thread at a time. Its destructor, even after a failed creation, tells
// the peers that this rank has left; no call may be under way then. In a fork of the process that made it, it touches no shared
// memory or connection.
struct CommunicatorState {
  CommunicatorState(std::unique_ptr<Columns> all_columns, std::shared_ptr<Control> of_rank,
                    const std::shared_ptr<Segment>& segment, std::chrono::milliseconds wait_at_most);
  ~CommunicatorState();
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;

  CallContext around();
  IssuedTransfer::Around around_transfers() { return {*control, transfers, timeout}; }
  // True in the process that made it.
  bool is_own() const { return forks_ == forks(); }

  std::unique_ptr<Columns> columns;
  std::shared_ptr<Endpoint> endpoint;  // null if this rank has no column between hosts
  std::shared_ptr<Control> control;    // shared, since the link may outlive the state
  std::array<LaneQueue, kLanes> lanes;
  Statistics statistics;
  TransferLane transfers;
  std::unique_ptr<HostLink> link;       // only on the leader of a host
  std::optional<MeetingPlaces> places;  // only between hosts
  std::optional<Joined> joined;         // how processes of GPU memory pass descriptors, until they have lent each other slots
  std::chrono::milliseconds timeout;
  uint64_t number = kEarliestNumber;  // the next call's
  int rails = 0;                      // NICs of each host, between hosts
  InitCost cost;
  bool oversubscribed = true;  // more ranks than processors; known once all ranks have joined

 private:
  void leave_network_alone();

  unsigned forks_;  // the process's count when this was made
};

}  // namespace fccl::core
