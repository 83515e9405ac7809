// HostLink: how the hosts of a communicator tell each other what became of it and of their ranks.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "bootstrap/bootstrap.h"
#include "host_link/leader_connection.h"
#include "host_link/leader_handshake.h"
#include "host_link/link_messages.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/process_watch.h"

namespace fccl {

// What a host has to tell the others: that the communicator has failed there, which of its ranks are gone, and for whom they
// wait.
struct LinkNews {
  std::optional<Error> failure = {};
  std::vector<Departure> departures = {};
  std::vector<LongWait> waits = {};
};

// All are set. Called on the link's thread, one at a time; a handler neither waits nor destroys the link, but may tell. Who is
// named is never of this host, and is gone once.
struct LinkEvents {
  std::function<void(const Error&)> failed;          // the communicator has failed on another host; not once it has here
  std::function<void(int rank, Gone how)> gone;      // a rank is gone
  std::function<void(const LongWait&)> waits;        // for whom a rank waits has changed
  std::function<void(int leader, LinkEnd how)> cut;  // nothing more will be heard of the host of that leader
  // `wake` was written to, or a watched process has ended. Returns all that there is to tell, also what is told already.
  std::function<LinkNews()> look;
};

// One leader per host speaks for the ranks of its host. The leaders form a star: each has one authenticated connection to the
// hub, which tells the others what it hears from one. A thread sleeps until there is something to tell or to hear. Nobody waits
// for a slow or stopped leader: what it does not take is kept for it, and that is never more than one failure, one line per
// rank and per host, and two lines for each wait that lasts seconds.
//
// Made by one thread, by meet, any number of exchanges, and start; an error of these is final: destroy the link. Any thread may
// tell. To destroy a copy in a forked child would end the parent's connections: a child leaves it alone.
class HostLink {
 public:
  // The hub, which alone has a listener, waits until all leaders have come, and closes it; another leader waits until the hub
  // has let it in. From then on a leader that dies, leaves or gives up is an error on all others at once, by its name.
  static Result<std::unique_ptr<HostLink>> meet(HostLinkRequest request, Descriptor listener, const WaitLimit& limit);
  // All leaders' bytes, by host. Every leader does it equally often, with at most kBlobLimit bytes.
  Result<std::vector<std::string>> exchange(const std::string& mine, const WaitLimit& limit);
  // Begins to call `events`, also for what came since meet. `wake` is an eventfd; the ranks of this host write to it.
  Result<void> start(Descriptor wake, std::vector<std::shared_ptr<ProcessWatch>> processes, LinkEvents events);

  // To all other hosts, without waiting. Only the first failure that a link is told or hears of counts, of each rank of its own
  // host that is gone only what it is told first, and of a wait only what is new.
  void tell(const LinkNews& news);

  // For a leader that leaves before others do: tells that, and goes on without it for the ranks of its host that are still
  // there, the hub also for other hosts, until nobody needs it, the communicator has failed, or `most` has passed. Waits like
  // the end.
  static void retire(std::unique_ptr<HostLink> link, std::chrono::milliseconds most);
  // Says what there is left to tell, and goodbye; waits a few milliseconds at most for the system to take it, never for a peer.
  ~HostLink();

 private:
  HostLink(HostLinkRequest request, Descriptor bell);

  void keep(const LinkNews& news);
  void stop();
  void serve();
  bool is_needed();
  void look(std::span<pollfd> watched);
  bool say_what_was_told();
  void attend(LeaderConnection& connection);
  bool take(const LeaderConnection& from, const LinkMessage& message);
  bool speaks_of(const LeaderConnection& connection, int host) const;
  void lose(LeaderConnection& connection);
  void cut(int host, LinkEnd how);
  void relay(std::string_view message, const LeaderConnection* from);
  void hand_over();

  // Of the thread, once it runs.
  HostLinkRequest request_;
  std::list<LeaderConnection> connections_;  // the hub's to all others; another leader's only one, to the hub
  Descriptor bell_;                          // an eventfd: there is something to tell, or to end
  Descriptor wake_;
  std::vector<std::shared_ptr<ProcessWatch>> processes_;
  LinkEvents events_;
  std::vector<pollfd> polled_;
  std::vector<bool> is_cut_;       // by host
  std::optional<Deadline> until_;  // once retired

  std::mutex mutex_;
  std::vector<std::string> to_tell_;
  bool failed_ = false;
  bool leaving_ = false;
  // By rank: of other hosts the thread's, of this one under the lock.
  std::vector<Gone> gone_;
  std::vector<int> awaited_;

  std::thread thread_;
};

}  // namespace fccl
