// WireLane: one member's messages to its peers on other hosts, and theirs to it.
//
//   entry     a message that tells a peer of a call: the call in full, a small payload, and what landing is free again
//   message   a slice on its way to a peer: written as stripes over the rails into the next slot of the landing that the peer
//             keeps for this member; whole when as many immediates have come as it has stripes
//   credit    a message that says what landing is free again: at half a window, and at the end of a call
//
// Entries, credits, stripes and ends may come in any order. So each names its call or message, by a number that wraps later
// than the window ends; and each credit includes all earlier ones. Members may send before the peer has entered the call: the
// landing that they write to has been free since earlier calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "wire/introduction.h"
#include "wire/landing.h"
#include "wire/lane_shape.h"

namespace fccl::core {

class Endpoint;

// A communicator owns it, and the one thread that runs the lane's current phase uses it; or a NoticeLane owns it, and the
// thread that has its turn uses it. WireEntries over it exchange the calls. Members are numbered in the column, or are all
// ranks; a peer is any other member. No function waits: each says what can be done now. A lane whose phase failed runs no
// other. It may be destroyed at any time, and does not wait for peers.
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
  int peer(int i) const { return shape_.peer(i); }
  size_t slot_bytes() const { return shape_.slot_bytes; }
  // Returns the largest payload that every member takes with an entry.
  size_t payload_bytes() const { return payload_bytes_; }

  void progress();
  // True if a peer, or the network, has failed; failure_of returns the reason, by the peer's rank, for a wait: the wait looks
  // at its counter once more before it fails.
  bool has_failed(int member) const;
  std::optional<Error> failure_of(int rank) const;

  // Takes a stage for the next message; null if all hold outgoing messages.
  std::byte* take_stage();
  // True if the peer has landing for one more message, and the queues have room for it.
  bool can_send(int member, size_t bytes) const;
  // Sends the first `bytes` of the last stage taken; it may be sent to any number of peers.
  void send(int member, size_t bytes);
  // True if everything is with the transport.
  bool all_posted() const;
  // Returns a member that has not taken all messages out of its landing, and still may, or -1.
  int still_taking() const;

  // Holds what peers send to this member, and what it tells them of that.
  Landing& landing() { return landing_; }
  const Landing& landing() const { return landing_; }

  // ---- For the entries or the notices of this lane
  Port& port() const { return *port_; }
  int place(int member) const { return shape_.place(member); }
  const WireLink& link(int member) const;
  // Posts a message that lies in the port's memory for it, behind the head that landing has made; `end` counts its end.
  void post(int member, std::span<std::byte> message, int end);

  // The sources that the kernel of the running reduction reads, by member; they are kept here so that no call allocates.
  std::vector<const void*> sources;
  std::vector<const std::byte*> holds;  // parts that stay in landing until they are added

 private:
  WireLane(Endpoint& endpoint, const WireLaneShape& shape, Port* port);
  Result<void> connect(int member, const Introduction& other);

  Endpoint& endpoint_;
  const WireLaneShape shape_;
  Port* port_;
  Introduction introduction_;
  std::vector<WireLink> links_;  // by place
  Landing landing_;
  size_t payload_bytes_ = 0;
  int stage_ = 0;                        // the last one taken
  std::vector<uint64_t> stages_posted_;  // by stage: operations
};

}  // namespace fccl::core
