// Liveness: which ranks of a communicator are alive, have left, or have died.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/peer_status.h"

namespace fccl::core {

class FailureBoard;
class KnownCalls;
class Peers;
class ProcessWatch;
enum class LinkEnd : uint8_t;
struct Departure;

// A Control owns it. Any thread may call, also after a failure. It watches the processes of this host's ranks, and hears from
// the link what became of the others.
class Liveness {
 public:
  Liveness(const Peers& peers, const KnownCalls& calls, FailureBoard& failures)
      : peers_(peers), calls_(calls), failures_(failures) {}

  // Returns what became of a rank: of this host by its process, of another host as reported.
  PeerStatus status_of(int rank) const;
  // Say whether one rank has died without leaving, or has left in good order.
  bool has_died(int rank) const { return status_of(rank) == PeerStatus::died; }
  bool has_left(int rank) const;
  // Returns a rank of another host that has left, and had not made the call of that number.
  std::optional<int> left_before(uint64_t call) const;
  // Lists the ranks that died without leaving, as far as this host knows.
  std::vector<int> dead_ranks() const;
  // Returns the rank whose death or departure ended the reports on a rank that is out of reach or unheard: the first rank of
  // its host, or of a host through which that is heard.
  int reporter_of(int rank) const;

  // Tells the peers that this rank leaves in good order.
  void leave();
  // Looks for peers that died without leaving, and raises their deaths.
  void look_for_deaths();
  // Looks at only some peers of this host in each call, since in such a wait many ranks of a host look. Called by one thread.
  void look_for_some_deaths();
  // Takes one step of a search for dead ranks, from the place `next` among the ranks of this host on, which it moves.
  std::optional<int> search(size_t& next) const;

  // List the ranks of this host that have left or died, for its leader to tell, and the watches on them.
  std::vector<Departure> local_departures() const;
  std::vector<std::shared_ptr<ProcessWatch>> local_watches() const;
  // Take news of other hosts: the departure of a rank; and that a host, whose first rank is `leader`, will not be heard of
  // again, because of the leader's end, or of that of another one, `through` whom it was heard, which was told before.
  void hear_of_departure(const Departure& departure);
  void hear_of_end(int leader, LinkEnd how);
  void hear_no_more(int leader, int through);

 private:
  std::atomic<PeerStatus>& reported(int rank) const;
  void look_for_remote_deaths();
  void look_at_watches(size_t first);
  size_t next_turn(size_t first) const;
  std::vector<int> dead_among(size_t first) const;
  std::optional<int> find_remote_dead() const;

  const Peers& peers_;
  const KnownCalls& calls_;
  FailureBoard& failures_;
  size_t next_watch_ = 0;  // begin of the next look by turns
};

}  // namespace fccl::core
