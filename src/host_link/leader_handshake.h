// Connects the leaders of a communicator's hosts, and exchanges their bytes while it is created.
#pragma once

#include <algorithm>
#include <chrono>
#include <list>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "channels/acceptor.h"
#include "host_link/host_link_request.h"
#include "host_link/leader_connection.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "sockets/socket.h"
#include "waiting/failure_timing.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

// One wait of a leader for the others; uses a HostLink's connections, in the thread that creates the link. If a leader ends,
// fails or gives up, the wait fails with that leader's name, and the hub passes the failure on; so it does at the end of its
// own limit.
class LeaderHandshake {
 public:
  LeaderHandshake(const HostLinkRequest& request, std::list<LeaderConnection>& connections, const WaitLimit& limit);

  // let_in gives the hub a connection to every other leader; reach_hub gives another leader one to the hub.
  Result<void> let_in(const Descriptor& listener);
  Result<void> reach_hub();
  // Returns the bytes of all leaders, by host.
  Result<std::vector<std::string>> exchange(const std::string& mine);

 private:
  Result<void> gather_blobs();
  Result<void> tell(const LinkMessage& blobs);
  bool is_served(const LeaderConnection& connection) const;
  Result<void> try_to_reach(const Address& address, std::chrono::milliseconds patience);
  void admit(Channel channel);
  Result<void> turn(Acceptor* acceptor);
  Result<void> attend(LeaderConnection& connection);
  Result<void> look();
  tl::unexpected<Error> pass_on(const Error& error, const LeaderConnection* from);
  Error timed_out() const;
  std::string awaited() const;
  std::string hub() const { return describe(request_.leaders[HostLinkRequest::kHub]); }
  std::string self() const { return describe(request_.leaders[request_.host()]); }
  Deadline next_look() const { return {std::min(next_look_.at, limit_.deadline.at)}; }

  const HostLinkRequest& request_;
  std::list<LeaderConnection>& connections_;
  WaitLimit limit_;
  Clock::time_point begin_ = Clock::now();
  Deadline next_look_;
  std::string observed_;                                   // the hub's state, as seen while connecting to it
  std::set<int> settled_;                                  // hosts that the hub does not wait for now
  bool has_told_ = false;                                  // the blobs were said to all
  std::string told_awaited_;                               // the last Awaiting that was sent
  Deadline next_awaiting_ = Deadline::after(kReportStep);  // each goes to all, so they come no more often
  std::vector<std::string> blobs_;                         // by host
};

}  // namespace fccl::core
