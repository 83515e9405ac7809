// HostLink: carries failures and departures of ranks between the hosts of a communicator.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "host_link/host_link_request.h"
#include "host_link/link_messages.h"
#include "host_link/told_news.h"
#include "os/clock.h"
#include "os/descriptor.h"

struct pollfd;

namespace fccl::core {

class LeaderConnection;
class ProcessWatch;
struct WaitLimit;

// Every handler must be set. The link's thread calls them, one at a time; a handler neither waits nor destroys the link, but
// may tell. They never name a rank of this host, and name a rank as gone only once.
struct LinkEvents {
  std::function<void(const Error&)> failed;    // the communicator has failed on another host; not called once it has
                                               // failed here
  std::function<void(const Departure&)> gone;  // a rank is gone
  std::function<void(const LongWait&)> waits;  // a rank waits for another one than before
  // The host of that leader will not be heard of again, because of the leader's end, or of that of the one through whom it was
  // heard.
  std::function<void(int leader, LinkEnd how)> cut;
  std::function<void(int leader, int through)> unheard;
  // Called when `wake` was written to, or a watched process has ended. Returns all news, including news that was told before.
  std::function<LinkNews()> look;
};

// One leader per host speaks for the ranks of its host. The leaders form a tree (LeaderTree): each has one authenticated
// connection to its parent and to each child, and passes on to the others what one of them says. A thread sleeps until it can
// tell or hear news. No host waits for a slow or stopped leader: unread messages are kept for it, at most one failure, one line
// per rank and per host, and two lines for each wait that lasts seconds.
//
// One thread makes it, by meet, any number of exchanges, and start; an error of these is final: destroy the link. Any thread
// may tell. Destroying a copy in a forked child would end the parent's connections: a child leaves it alone.
class HostLink {
 public:
  // Connects this leader: it waits until its parent has let it in and all children have come to its listener, and closes that.
  // From then on a leader that dies, leaves or gives up is at once an error on all others, which names it.
  static Result<std::unique_ptr<HostLink>> meet(HostLinkRequest request, Descriptor listener, const WaitLimit& limit);
  // Returns the bytes of all leaders, by host. Every leader calls it equally often, with at most kBlobLimit bytes.
  Result<std::vector<std::string>> exchange(const std::string& mine, const WaitLimit& limit);
  // Begins to call `events`, including news that came since meet. `wake` is an eventfd; the ranks of this host write to it.
  Result<void> start(Descriptor wake, std::vector<std::shared_ptr<ProcessWatch>> processes, LinkEvents events);

  // Tells all other hosts what is news (ToldNews), without waiting.
  void tell(const LinkNews& news);

  // Ends a leader's part before that of others: tells that the leader has left, and keeps the link running for the ranks of its
  // host that are still there, and for other hosts that hear through it, until none needs it, the communicator has failed, or
  // `most` has passed. It waits as long as the destructor.
  static void retire(std::unique_ptr<HostLink> link, std::chrono::milliseconds most);
  // Sends the remaining news, and goodbye; waits a few milliseconds at most for the system to accept them, never for a peer.
  ~HostLink();

 private:
  HostLink(HostLinkRequest request, Descriptor bell);

  void stop();
  void serve();
  bool is_needed();
  void look(std::span<pollfd> watched);
  bool relay_queued();
  void attend(LeaderConnection& connection);
  bool take(const LeaderConnection& from, const LinkMessage& message);
  bool speaks_of(const LeaderConnection& connection, int host) const;
  void lose(LeaderConnection& connection);
  void cut(const Cut& ended, const LeaderConnection* from);
  void relay(std::string_view message, const LeaderConnection* from);
  void hand_over();

  // Belongs to the thread, once it runs.
  HostLinkRequest request_;
  std::list<LeaderConnection> connections_;  // one to the parent, and one to each child
  Descriptor bell_;                          // an eventfd: there is news to tell, or the link is to end
  Descriptor wake_;
  std::vector<std::shared_ptr<ProcessWatch>> processes_;
  LinkEvents events_;
  std::vector<pollfd> polled_;
  std::vector<bool> is_cut_;       // by host: it will not be heard of again
  std::optional<Deadline> until_;  // once retired

  // Shared with the threads that tell and stop.
  ToldNews told_;
  std::atomic<bool> leaving_{false};
  std::thread thread_;
};

}  // namespace fccl::core
