// WireLane: one member's side of a communicator's sequence of collectives between hosts.
//
//   entry     one message to each peer and call: the call in full, a small payload, and what landing is free again
//   message   a slice on its way to a peer: written as stripes over the rails into the next slot of the landing that the peer
//             keeps for this member; whole when as many immediates have come as it has stripes
//   credit    a message that says what landing is free again: at half a window, and at the end of a call
//
// Entries, credits, stripes and ends may come in any order. So each names the call or message that it is of, by a number that
// wraps later than the window ends; and what a credit says includes all earlier ones. Members may send before the peer has
// entered the call: what they may write to is free since the calls before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/call.h"
#include "system/counter.h"
#include "wire/introduction.h"
#include "wire/port.h"
#include "wire/stripes.h"

namespace fccl {

class Endpoint;

struct WireLaneShape {
  std::vector<int> ranks;  // of all members, in the communicator
  int me = 0;              // this member
  // Messages of one peer that may lie in their landing, and the bytes of each; a power of two and a multiple of 64. Equal in
  // all members. All landing takes (members - 1) x window x slot_bytes.
  int window = 8;
  size_t slot_bytes = size_t{256} << 10;
  // Stages: memory for so many messages on their way out, of slot_bytes each.
  int stages = 8;
  // The largest payload that goes with an entry.
  size_t payload_bytes = 4096;
  uint32_t first_sequence = 0;
  // What peers must say in their messages to this member: random, and told to them alone.
  uint64_t token = 0;
  // Of a lane of transfers, which has notices in the place of calls: see PortShape.
  int notices = 0;
  int notices_out = 0;

  int members() const { return static_cast<int>(ranks.size()); }
};

// Owned by a communicator; used by the one thread that runs the lane's current phase. Members are numbered in the column; a
// peer is any other member. No function waits: each says what can be done now. A lane whose phase did not end well runs no
// other. It is destroyed at any time and waits for nobody.
class WireLane {
 public:
  // The lane gets its memory and its channels, and peers may send as soon as they are told its introduction.
  static Result<std::unique_ptr<WireLane>> open(Endpoint& endpoint, const WireLaneShape& shape);
  ~WireLane();
  WireLane(const WireLane&) = delete;
  WireLane& operator=(const WireLane&) = delete;

  const Introduction& introduction() const { return introduction_; }
  // `all`: by member, this one included. A call may be entered when all members have connected. Error: a member whose shape
  // differs, or whose address is none.
  Result<void> connect(std::span<const Introduction> all);

  int members() const { return shape_.members(); }
  int me() const { return shape_.me; }
  int rank_of(int member) const { return shape_.ranks[member]; }
  // The i-th peer after this member, 1 <= i < members(): each member begins with another one.
  int peer(int i) const { return (shape_.me + i) % members(); }
  size_t slot_bytes() const { return shape_.slot_bytes; }
  // The largest payload that every member takes with an entry.
  size_t payload_bytes() const { return payload_bytes_; }

  void progress();
  // Whether a peer, or the network, has failed; and the reason, by the peer's rank, for whoever waits for it: a wait that asks
  // looks at its counter once more before it fails.
  bool has_failed(int member) const { return port_->has_failed(place(member)); }
  std::optional<Error> failure_of(int rank) const;

  // Announces a call: begins it here, then tells each peer, with `bytes` of payload for that peer.
  void begin(const CallInFull& call);
  Awaited may_enter(int member) const;
  void enter(int member, const void* payload, size_t bytes);
  Awaited entered(int member) const;
  bool has_entered(int member) const { return entered(member).reached(); }
  // After has_entered: whether the peer made the same call, the call, and the payload, which stays until the next begin.
  bool agrees(int member) const { return box_of(member).word.load(std::memory_order_relaxed) == word_; }
  const CallInFull& call_of(int member) const { return member == me() ? call_ : box_of(member).call; }
  std::span<const std::byte> payload_of(int member) const;
  // The call of that number if the peer made it here: whoever made another call of it, on another lane, may ask. It stays,
  // since this lane does not come past it.
  std::optional<CallInFull> call_numbered(uint64_t number, int member) const;

  // Takes a stage for the next message; null if all are on their way out.
  std::byte* take_stage();
  // Whether the peer has landing for one more message, and the queues room for it.
  bool can_send(int member, size_t bytes) const;
  // Sends the first `bytes` of the stage taken last, which any number of peers may be sent.
  void send(int member, size_t bytes);
  // Whether all has been handed to the transport, and whether the peers have taken all messages out of their landing.
  bool all_posted() const;
  bool all_taken() const { return port_->is_taken(); }

  // The next message of a peer: whether it is there, and where. `receive` goes on to the one behind it.
  bool has_arrived(int member, size_t bytes) const;
  const std::byte* landing(int member) const;
  void receive(int member, size_t bytes);
  // Frees the landing of the oldest message received.
  void consume(int member);
  // Tells peers what landing is free, where that is due.
  void grant();
  // Tells peers all that is free, so that one that leaves knows that nothing is lost; false while a credit is still on its way
  // to one that must hear more.
  bool grant_rest();

  // Of a lane of transfers: small messages that are taken in the order in which they were sent. Those with a payload that comes
  // unasked are eager; of a peer's at most kEagers may not be released.
  static constexpr uint32_t kEagers = 8;
  bool can_notify(int member) const;
  bool can_notify_eagerly(int member) const;
  void notify(int member, std::span<const std::byte> head, std::span<const std::byte> payload);
  void notify_eagerly(int member, std::span<const std::byte> head, std::span<const std::byte> payload);
  // The next one of a peer, head and payload, empty if it is not there, until it is taken. Whoever takes an eager one releases
  // it, once.
  std::span<const std::byte> noticed(int member) const;
  void take_notice(int member);
  void release(int member);

  // What the kernel of the running reduction reads, by member; here so that no call allocates.
  std::vector<const void*> sources;
  std::vector<const std::byte*> holds;  // parts that lie in landing until they are added

 private:
  // The way to a peer.
  struct Peer {
    SharedRails rails;
    uint32_t channel = 0;       // the peer's number for us
    uint64_t token = 0;         // what it wants to hear from us
    size_t landing_offset = 0;  // of our slots in its landing
    struct Rail {
      PeerId peer{};
      RemoteMemory landing;
    };
    std::vector<Rail> rail;
    uint64_t received = kFirstMessage;
    uint64_t told = kFirstMessage;             // of what is consumed
    std::array<uint64_t, 2> entries_posted{};  // by parity
    uint64_t credits_posted = 0;
    uint32_t eagers = 0;   // sent
    NoticesTaken taken{};  // of the peer's
    NoticesTaken told_taken{};
    std::vector<uint64_t> arrivals;  // by slot: those of the messages received
  };

  WireLane(Endpoint& endpoint, const WireLaneShape& shape, Port* port);
  Result<void> connect(int member, const Introduction& other);
  // The place of a member among the peers of this one.
  int place(int member) const { return member < shape_.me ? member : member - 1; }
  Peer& peer_of(int member) { return peers_[place(member)]; }
  const Peer& peer_of(int member) const { return peers_[place(member)]; }
  EntryBox& box_of(int member) const { return port_->peers[place(member)].boxes[sequence_ & 1]; }
  uint64_t consumed(int member) const { return port_->peers[place(member)].consumed.load(std::memory_order_relaxed); }
  bool grant_is_due(int member) const;
  bool has_more_to_tell(int member) const;
  NoticesTaken heard_of(int member) const;
  int free_notice() const;
  // False while the last one is on its way.
  bool send_credit(int member);
  void push_message(int member, std::byte* bytes, size_t size, int end);

  Endpoint& endpoint_;
  WireLaneShape shape_;
  Port* port_;
  Introduction introduction_;
  std::vector<Peer> peers_;
  size_t payload_bytes_ = 0;
  uint32_t sequence_;
  uint64_t word_ = 0;
  CallInFull call_;
  int stage_ = 0;                         // taken last
  std::vector<uint64_t> stages_posted_;   // by stage: operations
  int notice_ = 0;                        // posted last
  std::vector<uint64_t> notices_posted_;  // by their memory
  bool grants_wait_ = false;
};

}  // namespace fccl
