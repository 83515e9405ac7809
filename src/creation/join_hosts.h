// HostJoiner: extends a communicator over several hosts: the leaders of the hosts meet, every column gets its lanes, and every
// rank learns all addresses.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "creation/network.h"
#include "hierarchical/inter_host_call.h"
#include "host_link/host_link.h"
#include "settings/settings.h"
#include "waiting/wait_limit.h"
#include "wire/notice_lane.h"

namespace fccl::core {

class InitCalls;
struct CommunicatorState;

// Lives during a creation, on its thread, and completes the creation's state. It owns the new lanes until they span the hosts.
// A failure is the communicator's first one, and the other hosts are told.
class HostJoiner {
 public:
  HostJoiner(Joined& joined, const Settings& settings, CommunicatorState& state, InitCalls& calls, const WaitLimit& limit);

  Result<void> join();

 private:
  Result<void> try_to_join();
  bool is_leader() const;
  Result<void> meet_leaders();
  Result<NetworkEnd> open_endpoint();
  Result<std::string> open();
  Result<std::optional<ColumnEnd>> open_lanes();
  Result<RankEnd> open_transfers();
  Result<void> connect_transfers(Network& network);
  Result<std::vector<std::string>> exchange_here(const std::string& mine);
  Result<std::vector<std::string>> exchange_by_leaders(const std::string& mine);
  Result<void> connect_lanes(const Network& network);
  Result<void> span_lanes(const Network& network);
  Result<void> start_link();
  LinkEvents link_events();

  Joined& joined_;
  const Settings& settings_;
  CommunicatorState& state_;
  const Columns& columns_;
  InitCalls& calls_;
  WaitLimit limit_;
  std::array<std::unique_ptr<InterHostCall>, kLanes> inter_host_calls_;
  std::unique_ptr<NoticeLane> transfers_;
  Descriptor wake_;  // wakes the link, as long as the others can be told of a failure
};

}  // namespace fccl::core
