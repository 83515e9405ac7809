// How the leaders of a communicator's hosts meet, and give each other bytes while it is created.
#pragma once

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/bootstrap.h"
#include "host_link/leader_connection.h"
#include "sockets/socket.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/wait_limit.h"

namespace fccl {

// Who the leaders are, and which of them this one is.
struct HostLinkRequest {
  UniqueId id;
  int rank = 0;                 // of this leader
  std::vector<Member> leaders;  // by host; the first one is the hub, and its address is where that listens
  std::vector<int> host_of;     // by rank

  static constexpr int kHub = 0;
  int host() const { return host_of[rank]; }
  int hosts() const { return static_cast<int>(leaders.size()); }
  bool is_hub() const { return host() == kHub; }
};

// One wait of a leader for the others; uses what a HostLink owns, in the thread that creates it. A leader that ends, fails or
// gives up fails it, with its name, and the hub passes that on; so does the end of its own limit.
class LeaderHandshake {
 public:
  LeaderHandshake(const HostLinkRequest& request, std::list<LeaderConnection>& connections, const WaitLimit& limit);

  // The hub's way to have a connection to every other leader, and another leader's to have one to the hub.
  Result<void> let_in(const Descriptor& listener);
  Result<void> reach_hub();
  // All leaders' bytes, by host.
  Result<std::vector<std::string>> exchange(const std::string& mine);

 private:
  Result<void> gather_blobs();
  Result<void> tell_blobs();
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
  std::string observed_;               // of the hub, by one who is on the way to it
  std::set<int> settled_;              // hosts for which the hub does not wait now
  std::map<int, BlobTeller> tellers_;  // by host, while they tell
  std::string told_awaited_;           // the last Awaiting
  std::vector<std::string> blobs_;     // by host
};

}  // namespace fccl
