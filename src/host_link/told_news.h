// ToldNews: the news of a communicator that a host has told the others, or heard from them, so that it tells nothing twice.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/peer_status.h"
#include "base/result.h"
#include "host_link/link_messages.h"

namespace fccl::core {

struct HostLinkRequest;

// The news that a host has for the others: the communicator's failure there, the ranks that are gone, and the ranks that its
// ranks wait for.
struct LinkNews {
  std::optional<Error> failure = {};
  std::vector<Departure> departures = {};
  std::vector<LongWait> waits = {};
};

// A HostLink owns it; any thread may call. It keeps the first failure, the first departure of each rank, and waits that have
// changed; it drops what repeats them.
class ToldNews {
 public:
  // The caller keeps `request` longer than this.
  explicit ToldNews(const HostLinkRequest& request);

  // Queues what is new in this host's news.
  void keep(const LinkNews& news);
  // Returns the queued messages, to be told to all other hosts.
  std::vector<std::string> take();
  // Return true if what another host says is news.
  bool hear_failure();
  bool hear(const Departure& departure);

  bool knows_a_failure() const;
  // True if a rank of this host is not gone.
  bool has_ranks_here() const;

 private:
  const HostLinkRequest& request_;
  mutable std::mutex mutex_;
  std::vector<std::string> queued_;
  bool failed_ = false;
  std::vector<PeerStatus> gone_;  // by rank
  std::vector<int> awaited_;      // by rank: what was told of the waits of this host
};

}  // namespace fccl::core
