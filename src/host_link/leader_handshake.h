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
// fails or gives up, the wait fails with that leader's name, and those who wait pass the failure on; so they do at the end of
// their own limits.
class LeaderHandshake {
 public:
  LeaderHandshake(const HostLinkRequest& request, std::list<LeaderConnection>& connections, const WaitLimit& limit);

  // Give a leader its connections: to its parent, if it is not the top, and to each child.
  Result<void> reach_parent();
  Result<void> let_children_in(const Descriptor& listener);
  // Returns the bytes of all leaders, by host.
  Result<std::vector<std::string>> exchange(const std::string& mine);

 private:
  using Connections = std::vector<LeaderConnection*>;

  Connections children();
  LeaderConnection& parent() const { return connections_.front(); }
  Result<void> gather_blobs(const Connections& from);
  Result<void> tell(const LinkMessage& blobs, const Connections& to);
  Blobs blobs_of_subtree();
  bool is_parent(const LeaderConnection& connection) const;
  bool is_served(const LeaderConnection& connection) const;
  bool awaits_parent() const { return !request_.is_top() && missing_.contains(request_.parent()); }
  Result<void> try_to_reach(const Address& address, std::chrono::milliseconds patience);
  void admit(Channel channel);
  Result<void> turn(Acceptor* acceptor);
  Result<void> attend(LeaderConnection& connection);
  Result<void> look();
  void tell_awaited();
  tl::unexpected<Error> pass_on(const Error& error, const LeaderConnection* from);
  Error timed_out() const;
  std::string awaited() const;
  std::string awaited_below() const;
  const Member& leader(int host) const { return request_.leaders[static_cast<size_t>(host)]; }
  std::string self() const { return describe(leader(request_.host())); }
  std::string name_of_parent() const { return describe(leader(request_.parent())); }
  Deadline next_look() const { return {std::min(next_look_.at, limit_.deadline.at)}; }

  const HostLinkRequest& request_;
  std::list<LeaderConnection>& connections_;
  WaitLimit limit_;
  Clock::time_point begin_ = Clock::now();
  Deadline next_look_;
  std::string observed_;                                   // the parent's state, as seen while connecting to it
  std::set<int> missing_;                                  // hosts of the parent or of children that this leader waits for now
  bool has_told_ = false;                                  // the blobs of all were said to the children
  std::string told_down_;                                  // the last Awaiting that was sent to children
  std::string told_up_;                                    // the last one that was sent to the parent
  Deadline next_awaiting_ = Deadline::after(kReportStep);  // leaders pass them on, so they come no more often
  std::vector<std::string> blobs_;                         // by host
};

}  // namespace fccl::core
