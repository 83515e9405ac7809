// Landing: the messages of a member's peers as they come, and what the member tells its peers of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fccl::core {

struct EntryMessage;
struct NoticesTaken;
class Port;
struct WireLaneShape;
struct WireLink;

// The receiving half of a wire lane, which owns it; the lane's thread uses it. Every message to a peer begins with a head,
// which tells what landing is free; credits are heads alone, for peers that hear nothing else.
class Landing {
 public:
  // The lane keeps all three longer than this; by the links peers are told.
  Landing(const WireLaneShape& shape, Port& port, const std::vector<WireLink>& links);
  ~Landing();
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

  // Say whether the next message of a peer is there, and where; `receive` then moves on to the following one.
  bool has_arrived(int member, size_t bytes) const;
  const std::byte* message(int member) const;
  void receive(int member, size_t bytes);
  // Frees the landing of the oldest message received.
  void consume(int member);
  // Tells peers which landing is free, when a credit is due.
  void grant();
  // Tells peers all that is free, so that a peer which leaves knows that nothing is lost; false while an earlier credit to one
  // of them is still in flight.
  bool grant_rest();

  // Returns the first part of a message to a peer. The part tells the peer all that is free and taken, and is taken for told.
  EntryMessage head_for(int member);
  // Heads tell a peer which of its notices are taken. `is_due`: a credit should not wait for other news.
  void set_taken(int member, const NoticesTaken& taken, bool is_due);
  const NoticesTaken& taken(int member) const;
  const NoticesTaken& told_taken(int member) const;

 private:
  // Holds what has come of a peer, and what it was told.
  struct Peer;

  Peer& peer_of(int member);
  const Peer& peer_of(int member) const;
  size_t stripes_of(int member, size_t bytes) const;
  uint64_t consumed(int member) const;
  bool grant_is_due(int member) const;
  bool owes_credit(int member) const;
  // Returns false while the last credit is in flight.
  bool send_credit(int member);

  const WireLaneShape& shape_;
  Port& port_;
  const std::vector<WireLink>& links_;  // by place
  std::vector<Peer> peers_;             // by place
  bool grants_wait_ = false;
};

}  // namespace fccl::core
