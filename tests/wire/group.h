// Group: the members of a wire group as threads of one process, each with an endpoint of a simulated network.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "system/wait.h"
#include "transports/fabric.h"
#include "wire/phases.h"

namespace fccl::testing {

using Bytes = std::vector<std::byte>;

struct GroupShape {
  int members = 2;
  int lanes = 1;
  int window = 4;
  size_t slot_bytes = 1024;
  int stages = 3;
  size_t payload_bytes = 256;
};

// An algorithm of the catalog, by its name.
int algorithm_of(fcclColl_t collective, const std::string& name);

// Rank 10 + m is member m, so that a number of the one kind is not taken for the other.
inline int rank_of(int member) { return 10 + member; }

// One for each test. What goes wrong while it is made is a failure of the running test.
class Group {
 public:
  // What a member's transport is put into.
  using Bend = std::function<std::unique_ptr<Transport>(int member, std::unique_ptr<Transport>)>;

  explicit Group(const GroupShape& shape, const simulated::FabricOptions& options = {}, const Bend& bend = {});
  // Loses nothing that a member still sends.
  ~Group();

  const GroupShape& shape() const { return shape_; }
  simulated::Fabric& fabric() { return fabric_; }
  WireLane& lane(int member, int lane = 0) { return *members_[member]->lanes[lane]; }
  Endpoint& endpoint(int member) { return *members_[member]->endpoint; }
  // Ends a member at once, whatever is under way.
  void destroy(int member) { members_[member].reset(); }

  // Runs `part` once for each member, on a thread each.
  void run(const std::function<void(int member)>& part);

  // One call of one member, to its end; by mailbox if it fits and `algorithm` is negative.
  Result<Outcome> call(int member, const Call& call, uint64_t number, int algorithm, int lane = 0);
  std::chrono::milliseconds deadline{20000};

 private:
  struct Member {
    std::unique_ptr<Endpoint> endpoint;
    std::vector<std::unique_ptr<WireLane>> lanes;
  };

  GroupShape shape_;
  simulated::Fabric fabric_;
  std::vector<std::unique_ptr<Member>> members_;
};

// What rank `rank` contributes to a call: another value for each (rank, index, iteration).
Bytes input_of(int rank, size_t bytes, int iteration);
inline constexpr std::byte kPoison{0xa5};

}  // namespace fccl::testing
