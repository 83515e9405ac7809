// Lets a rank leave a communicator, here and towards other hosts.
#include "operations/communicator_state.h"

#include <utility>
#include <vector>

#include "health/control.h"
#include "hierarchical/hierarchical_lane.h"
#include "hierarchical/inter_host_call.h"
#include "hierarchical/phases.h"
#include "host_link/host_link.h"
#include "operations/call_context.h"
#include "topology/columns.h"
#include "wire/endpoint.h"

namespace fccl::core {
namespace {

// A rank that leaves waits this long for other hosts to take what it sent.
constexpr std::chrono::milliseconds kDrainTimeout{500};

std::vector<int> ranks_here(const Columns& columns) {
  const std::span<const int> here = columns.ranks_of(columns.host());
  return {here.begin(), here.end()};
}

template <size_t... lane>
std::array<LaneQueue, kLanes> queues_of(const std::shared_ptr<Segment>& segment, int local, const std::vector<int>& ranks_here,
                                        std::index_sequence<lane...>) {
  return {LaneQueue(segment, static_cast<LaneId>(lane), local, ranks_here)...};
}

}  // namespace

CommunicatorState::CommunicatorState(std::unique_ptr<Columns> all_columns, std::shared_ptr<Control> of_rank,
                                     const std::shared_ptr<Segment>& segment, std::chrono::milliseconds wait_at_most)
    : columns(std::move(all_columns)),
      control(std::move(of_rank)),
      lanes(queues_of(segment, columns->local(), ranks_here(*columns), std::make_index_sequence<kLanes>())),
      transfers(segment, columns->ranks_of(columns->host()), columns->local(), columns->ranks(), statistics),
      timeout(wait_at_most),
      forks_(forks()) {}

CallContext CommunicatorState::around() { return {*control, statistics, oversubscribed, lanes}; }

CommunicatorState::~CommunicatorState() {
  if (!is_own()) {
    leave_network_alone();
    return;
  }
  transfers.leave(Deadline::after(kDrainTimeout));
  // TCP may drop data that it still holds when this process ends; the endpoint stays as long as other communicators hold it.
  if (endpoint.use_count() == 1 && !control->failures.has_failed()) endpoint->await_taken(Deadline::after(kDrainTimeout));
  control->liveness.leave();
  if (link) HostLink::retire(std::move(link), timeout);
}

// In a fork, connections between hosts belong to the parent: closing them here would close them there.
void CommunicatorState::leave_network_alone() {
  (void)link.release();
  transfers.leave_network_alone();
  for (LaneQueue& lane : lanes)
    if (lane.hierarchical) (void)lane.hierarchical->inter_host_call.release();
  if (endpoint) new std::shared_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace fccl::core
