// How the leaders of a communicator's hosts meet, and give each other bytes while it is created.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "communicator/bootstrap.h"
#include "communicator/host_link_spoke.h"
#include "communicator/lobby.h"
#include "system/clock.h"
#include "system/descriptor.h"

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

// One wait of a leader for the others; uses what a HostLink owns, in the thread that creates it. A leader that ends, fails or gives
// up fails it, with its name, and the hub passes that on; so does the end of this leader's own patience.
class Meeting {
 public:
  Meeting(const HostLinkRequest& request, std::list<Spoke>& spokes, Deadline deadline, const StillWanted& still_wanted)
      : request_(request), spokes_(spokes), deadline_(deadline), still_wanted_(still_wanted) {}

  // The hub's way to have a spoke to every other leader, and everybody else's to have one to the hub.
  Result<void> let_in(const Descriptor& listener);
  Result<void> reach_hub();
  // All leaders' bytes, by host.
  Result<std::vector<std::string>> exchange(const std::string& mine);

 private:
  Result<Channel> connect();
  Result<void> await_connected(int socket, Deadline patience);
  void admit(Channel channel);
  Result<void> turn(Lobby* lobby);
  Result<void> attend(Spoke& spoke);
  Result<void> look();
  Result<void> feed(const std::string& mine);
  Result<void> check_end(const Spoke& spoke, bool owing) const;
  Result<void> pass_on(Result<void> result);
  tl::unexpected<Error> give_up(Error error);
  bool exchanged() const;
  std::vector<BlobTeller::Blob> blobs_for(const Spoke& spoke) const;
  std::vector<int> missing() const;
  std::string whom_it_awaits() const;
  std::string hub() const { return describe(request_.leaders[HostLinkRequest::kHub]); }
  std::string self() const { return describe(request_.leaders[request_.host()]); }

  const HostLinkRequest& request_;
  std::list<Spoke>& spokes_;
  Deadline deadline_;
  const StillWanted& still_wanted_;
};

}  // namespace fccl
