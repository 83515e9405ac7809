// HostJoiner: how a communicator comes to span hosts: the leaders of the hosts meet, every column gets its lanes, and all is
// told to all.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "hierarchical/inter_host_call.h"
#include "hierarchical/network.h"
#include "host_link/host_link.h"
#include "system/settings.h"
#include "system/wait_limit.h"

namespace fccl {

class InitCalls;
struct Parts;

// Lives during a creation, whose parts it goes on with, on its thread. Owns the lanes to be until they span the hosts. A
// failure is the communicator's first one, and is told to the other hosts.
class HostJoiner {
 public:
  HostJoiner(Joined& joined, const Settings& settings, Parts& parts, InitCalls& calls, const WaitLimit& limit);

  Result<void> join();

 private:
  Result<void> try_to_join();
  bool is_leader() const;
  Result<void> share_wake();
  Result<void> meet_leaders();
  Result<NetworkEnd> open_endpoint();
  Result<std::string> open_lanes();
  Result<std::string> open_transfers();
  Result<void> connect_transfers(const std::vector<RankEnd>& all);
  Result<std::vector<std::string>> exchange_here(const std::string& mine);
  Result<std::vector<std::string>> exchange_by_leaders(const std::string& mine);
  Result<void> connect_lanes(const Network& network);
  Result<void> span_lanes(const Network& network);
  Result<void> start_link();
  LinkEvents link_events();

  Joined& joined_;
  const Settings& settings_;
  Parts& parts_;
  const Columns& columns_;
  InitCalls& calls_;
  WaitLimit limit_;
  std::array<std::unique_ptr<InterHostCall>, kLanes> inter_host_calls_;
  std::unique_ptr<WireLane> transfers_;
  Descriptor wake_;  // of the link, as long as the others can be told that there is none
};

}  // namespace fccl
