// Rail: one rail of an endpoint of a Fabric: its operations under way, and when what becomes of them is due.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "transports/dice.h"
#include "transports/fabric_state.h"

namespace fccl::core::simulated {

// The way from a rail to a rail of a peer.
struct Link {
  uint64_t number = 0;
  int rail = 0;
  // Which rail of which endpoint the peer is, and its inbox.
  uint64_t target_endpoint = 0;
  uint64_t target_rail = 0;
  std::shared_ptr<Inbox> target;
  uint64_t posted = 0;
  // Polls of the target: as of our last poll, and when the first operation was posted.
  uint64_t target_polls = 0;
  uint64_t first_target_polls = 0;
  // True if the target has polled between our last two polls.
  bool open = false;
};

// An operation from its post until its end is polled.
struct Flight {
  Operation operation;
  Link* link = nullptr;
  // Its memory here; null for a write of no bytes.
  std::shared_ptr<Region> local;
  uint64_t place = 0;
  uint64_t target_polls = 0;
  size_t fragments_left = 0;
  // A message that found no room yet.
  bool waits_for_room = false;
  // Set by the first fragment that could not be moved.
  Result<void> result;
  std::shared_ptr<Outcome> outcome;
};

// Owned by an endpoint; one thread at a time. Time is counted in polls of this rail. Each fragment, end and notice is an
// event that happens at the first poll at which it is due and possible; faults are nothing but late and shuffled events.
class Rail {
 public:
  Rail(FabricState& fabric, std::shared_ptr<Inbox> inbox, uint64_t seed);

  Inbox& inbox() { return *inbox_; }
  bool refuses_connect() { return dice_.per_mille(fabric_.options.faults.refusals_per_mille); }
  // A link from this rail, owned by the endpoint.
  void add(Link& link) { links_.push_back(&link); }
  // True if one more operation must wait for a later poll.
  bool full_for(const Link& link);
  void launch(const Operation& operation, Link& link, std::shared_ptr<Region> local);

  // The completions that a poll found, and the flights that ended with them.
  struct Found {
    std::span<Completion> room;
    size_t completions = 0;
    std::vector<std::unique_ptr<Flight>> ended;
  };
  void poll(Found& found);

 private:
  struct Fragment {
    Flight* flight;
    size_t offset, bytes;
  };
  struct End {
    Flight* flight;
  };
  using Event = std::variant<Fragment, End, Notice>;

  void schedule(Event event, uint64_t earliest);
  void cut(Flight& flight);
  // Each does what is due, and says whether it was possible.
  bool happen(Event& event, Found& found);
  bool move(const Fragment& fragment);
  bool end(Flight& flight, Found& found);
  bool arrive(Notice& notice, Found& found);
  // True if that rail is a peer of this one.
  bool knows(const Inbox& sender) const;
  // True if the peer has polled since the post, and since our last poll.
  bool lets_move(const Flight& flight) const;
  // Puts a message into the peer's inbox.
  bool bring_message(Flight& flight);
  // Moves bytes from memory here into the peer's.
  Result<void> move_bytes(const Fragment& fragment);
  Loss loss_to(const Link& link) const;
  Notice notice_of(const Flight& flight) const;

  FabricState& fabric_;
  const std::shared_ptr<Inbox> inbox_;
  Dice dice_;
  std::vector<Link*> links_;
  uint64_t now_ = 0;
  uint64_t scheduled_ = 0;
  // By the poll at which they are due, then by a draw or in the order of scheduling.
  std::multimap<std::pair<uint64_t, uint64_t>, Event> events_;
  std::map<const Flight*, std::unique_ptr<Flight>> flights_;
  // Messages that the last poll handed out.
  std::vector<std::vector<std::byte>> lent_;
  // For the counts: the latest place seen per link, and the flight whose fragment was moved last.
  std::map<uint64_t, uint64_t> latest_arrived_, latest_ended_;
  const Flight* last_moved_ = nullptr;
};

}  // namespace fccl::core::simulated
