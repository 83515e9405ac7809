// WireLane: one member's side of a communicator's sequence of collectives between hosts.
//
//   entry     one message to each peer and call: the call in full, a small payload, and what landing is free again
//   message   a slice on its way to a peer: written as stripes over the rails into the next slot of the landing that the peer
//             keeps for this member; whole when as many immediates have come as it has stripes
//   credit    a message that says what landing is free again: at half a window, and at the end of a call
//
// Entries, credits, stripes and ends may come in any order. So each names its call or message, by a number that wraps later
// than the window ends; and each credit includes all earlier ones. Members may send before the peer has entered the call: the
// landing that they write to has been free since earlier calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/signature.h"
#include "waiting/counter.h"
#include "wire/entry.h"
#include "wire/introduction.h"
#include "wire/port.h"
#include "wire/stripes.h"

namespace fccl::core {

class Endpoint;

struct WireLaneShape {
  std::vector<int> ranks;  // all members' ranks in the communicator
  int me = 0;              // this member
  // Number of messages of one peer that may lie in their landing, and the bytes of each; a power of two and a multiple of 64.
  // Equal in all members. All landing takes (members - 1) x window x slot_bytes.
  int window = 8;
  size_t slot_bytes = size_t{256} << 10;
  // Stages are memory for outgoing messages, of slot_bytes each; this is their number.
  int stages = 8;
  // The largest payload that goes with an entry.
  size_t payload_bytes = 4096;
  uint32_t first_sequence = 0;
  // Peers must put this into their messages to this member: it is random, and only they are told it.
  uint64_t token = 0;
  // For the lane of a NoticeLane, which has notices in the place of calls: see PortShape.
  int notices = 0;
  int notices_out = 0;

  int members() const { return static_cast<int>(ranks.size()); }
};

// A communicator owns it, and the one thread that runs the lane's current phase uses it; or a NoticeLane owns it, and the
// thread that has its turn uses it. Members are numbered in the column, or are all ranks; a peer is any other member. No
// function waits: each says what can be done now. A lane whose phase failed runs no other. It may be destroyed at any time, and
// does not wait for peers.
class WireLane {
 public:
  // Gives the lane its memory and its channels; peers may send as soon as they have its introduction.
  static Result<std::unique_ptr<WireLane>> open(Endpoint& endpoint, const WireLaneShape& shape);
  ~WireLane();
  WireLane(const WireLane&) = delete;
  WireLane& operator=(const WireLane&) = delete;

  const Introduction& introduction() const { return introduction_; }
  // `all`: the introductions by member, including this one's. A call may be entered when all members have connected. Error: a
  // member whose shape differs, or whose address is not valid.
  Result<void> connect(std::span<const Introduction> all);

  int members() const { return shape_.members(); }
  int me() const { return shape_.me; }
  int rank_of(int member) const { return shape_.ranks[member]; }
  // Returns the i-th peer after this member, 1 <= i < members(): each member begins with a different one.
  int peer(int i) const { return (shape_.me + i) % members(); }
  size_t slot_bytes() const { return shape_.slot_bytes; }
  // Returns the largest payload that every member takes with an entry.
  size_t payload_bytes() const { return payload_bytes_; }

  void progress();
  // True if a peer, or the network, has failed; failure_of returns the reason, by the peer's rank, for a wait: the wait looks
  // at its counter once more before it fails.
  bool has_failed(int member) const { return port_->has_failed(place(member)); }
  std::optional<Error> failure_of(int rank) const;

  // Announces a call: begin starts it here, and enter tells each peer, with `bytes` of payload for that peer.
  void begin(const CallInFull& call);
  Awaited may_enter(int member) const;
  void enter(int member, const void* payload, size_t bytes);
  Awaited entered(int member) const;
  bool has_entered(int member) const { return entered(member).reached(); }
  // After has_entered: tell whether the peer made the same call, its call, and its payload, which stays until the next begin.
  bool agrees(int member) const { return box_of(member).word.load(std::memory_order_relaxed) == word_; }
  const CallInFull& call_of(int member) const { return member == me() ? call_ : box_of(member).call; }
  std::span<const std::byte> payload_of(int member) const;
  // Returns the call of that number if the peer made it on this lane: a rank that made another call of that number, on another
  // lane, may ask. The answer stays, since this lane does not pass that call.
  std::optional<CallInFull> call_numbered(uint64_t number, int member) const;

  // Takes a stage for the next message; null if all hold outgoing messages.
  std::byte* take_stage();
  // True if the peer has landing for one more message, and the queues have room for it.
  bool can_send(int member, size_t bytes) const;
  // Sends the first `bytes` of the last stage taken; it may be sent to any number of peers.
  void send(int member, size_t bytes);
  // True if everything is with the transport; true if the peers have taken all messages out of their landing.
  bool all_posted() const;
  bool all_taken() const { return port_->is_taken(); }

  // Say whether the next message of a peer is there, and where; `receive` then moves on to the following one.
  bool has_arrived(int member, size_t bytes) const;
  const std::byte* landing(int member) const;
  void receive(int member, size_t bytes);
  // Frees the landing of the oldest message received.
  void consume(int member);
  // Tells peers which landing is free, when a credit is due.
  void grant();
  // Tells peers all that is free, so that a peer which leaves knows that nothing is lost; false while an earlier credit to one
  // of them is still in flight.
  bool grant_rest();

  // ---- For the NoticeLane that owns this lane
  Port& port() const { return *port_; }
  // Returns the place of a member among the peers of this one.
  int place(int member) const { return member < shape_.me ? member : member - 1; }
  // Returns the first part of a message to a peer. The part tells the peer all that is free and taken, and the lane takes it
  // for told.
  EntryMessage head_for(int member);
  // Posts a message that lies in the port's memory for it; `end` counts its end.
  void post(int member, std::byte* bytes, size_t size, int end);
  // Heads and credits tell a peer which of its notices are taken. `is_due`: a credit should not wait for other news.
  void set_taken(int member, const NoticesTaken& taken, bool is_due);
  const NoticesTaken& taken(int member) const { return peer_of(member).taken; }
  const NoticesTaken& told_taken(int member) const { return peer_of(member).told_taken; }

  // The sources that the kernel of the running reduction reads, by member; they are kept here so that no call allocates.
  std::vector<const void*> sources;
  std::vector<const std::byte*> holds;  // parts that stay in landing until they are added

 private:
  // This member's state towards a peer.
  struct Peer {
    SharedRails rails;
    uint32_t channel = 0;       // the peer's number for this member
    uint64_t token = 0;         // the token that the peer expects from this member
    size_t landing_offset = 0;  // offset of this member's slots in the peer's landing
    struct Rail {
      PeerId peer{};
      RemoteMemory landing;
    };
    std::vector<Rail> rail;
    uint64_t received = kFirstMessage;
    uint64_t told = kFirstMessage;             // the count of consumed messages last told to it
    std::array<uint64_t, 2> entries_posted{};  // by parity
    uint64_t credits_posted = 0;
    NoticesTaken taken{};  // the peer's notices, and what was last told to it of them
    NoticesTaken told_taken{};
    bool taken_is_due = false;
    std::vector<uint64_t> arrivals;  // by slot: arrivals of the messages received there
  };

  WireLane(Endpoint& endpoint, const WireLaneShape& shape, Port* port);
  Result<void> connect(int member, const Introduction& other);
  Peer& peer_of(int member) { return peers_[place(member)]; }
  const Peer& peer_of(int member) const { return peers_[place(member)]; }
  EntryBox& box_of(int member) const { return port_->peers[place(member)].boxes[sequence_ & 1]; }
  uint64_t consumed(int member) const { return port_->peers[place(member)].consumed.load(std::memory_order_relaxed); }
  bool grant_is_due(int member) const;
  bool owes_credit(int member) const;
  // Returns false while the last credit is in flight.
  bool send_credit(int member);

  Endpoint& endpoint_;
  WireLaneShape shape_;
  Port* port_;
  Introduction introduction_;
  std::vector<Peer> peers_;
  size_t payload_bytes_ = 0;
  uint32_t sequence_;
  uint64_t word_ = 0;
  CallInFull call_;
  int stage_ = 0;                        // the last one taken
  std::vector<uint64_t> stages_posted_;  // by stage: operations
  bool grants_wait_ = false;
};

}  // namespace fccl::core
