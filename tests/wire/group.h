// Group: the ranks of several hosts as threads of one process, with segments and endpoints of a simulated network.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hierarchical/hierarchical_lane.h"
#include "hierarchical/inter_host_call.h"
#include "hierarchical/phases.h"
#include "host/lane.h"
#include "host/phase.h"
#include "host/task.h"
#include "segment/segment.h"
#include "transports/fabric.h"
#include "waiting/wait.h"
#include "wire/endpoint.h"
#include "wire/lane.h"

namespace fccl::core::testing {

using Bytes = std::vector<std::byte>;

struct GroupShape {
  int members = 2;  // hosts of one rank each, unless `ranks` says how many
  std::vector<int> ranks{};
  int lanes = 1;
  int window = 4;
  size_t slot_bytes = 1024;
  int stages = 3;
  size_t payload_bytes = 256;
  size_t host_slot_bytes = 1024;
  WireType wire_type = WireType::call;
  PolledBy polled_by = PolledBy::own_thread_too;

  int size() const { return ranks.empty() ? members : std::accumulate(ranks.begin(), ranks.end(), 0); }
};

// One for each test. An error while it is made is a failure of the running test.
class Group {
 public:
  // Wraps a member's transport.
  using Bend = std::function<std::unique_ptr<Transport>(int member, std::unique_ptr<Transport>)>;

  explicit Group(const GroupShape& shape, const simulated::FabricOptions& options = {}, const Bend& bend = {});
  // Loses nothing that a member still sends.
  ~Group();

  const GroupShape& shape() const { return shape_; }
  simulated::Fabric& fabric() { return fabric_; }
  const Columns& columns(int rank) { return *members_[rank]->columns; }
  // The lane, its exchange, its entries and the endpoint of a rank that has a column.
  WireLane& lane(int rank, int lane = 0) { return members_[rank]->sides[lane]->hierarchical->inter_host_call->lane(); }
  EntryExchange& exchange(int rank, int lane = 0) {
    return members_[rank]->sides[lane]->hierarchical->inter_host_call->exchange();
  }
  WireEntries& entries(int rank, int lane = 0) { return exchange(rank, lane).entries(); }
  Endpoint& endpoint(int rank) { return *members_[rank]->endpoint; }
  // Ends a rank at once, whatever is under way.
  void destroy(int rank) { members_[rank].reset(); }

  // Runs `part` once for each rank, on a thread each.
  void run(const std::function<void(int rank)>& part);

  // Begins a call of one rank; the caller resumes the phase, and runs the poll between. The call goes by the algorithm of that
  // name where the collective has one, else by the cheapest.
  struct Begun {
    Phase phase;
    Poll network;
    InterHostCall* inter_host_call;  // null without a column
  };
  Begun begin(int rank, const Call& call, uint64_t number, const std::string& algorithm, int lane = 0);
  // One call of one rank, to its end.
  Result<Outcome> call(int rank, const Call& call, uint64_t number, const std::string& algorithm, int lane = 0);
  std::chrono::milliseconds deadline{20000};

 private:
  // A rank's side of a lane.
  struct Side {
    Side(std::shared_ptr<Segment> segment, LaneId id, int rank, const std::vector<int>& numbers, uint32_t first_sequence)
        : lane(std::move(segment), id, rank, numbers, first_sequence) {}

    Lane lane;
    std::unique_ptr<HierarchicalLane> hierarchical;
  };
  struct Member {
    std::unique_ptr<Columns> columns;
    std::unique_ptr<Endpoint> endpoint;  // null without a column
    std::vector<std::unique_ptr<Side>> sides;
  };

  std::unique_ptr<Member> make_member(int rank, const Bend& bend);
  void connect(int lane);

  GroupShape shape_;
  simulated::Fabric fabric_;
  std::vector<std::vector<int>> hosts_;
  std::vector<std::shared_ptr<Segment>> segments_;  // by host
  std::vector<std::unique_ptr<Member>> members_;    // by rank
};

// The input of rank `rank` to a call: another value for each (rank, index, iteration).
Bytes input_of(int rank, size_t bytes, int iteration);
inline constexpr std::byte kPoison{0xa5};

}  // namespace fccl::core::testing
