// WireLaneShape: who the members of a wire lane are, and how much may be under way between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fccl::core {

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
  // Returns the i-th peer after this member, 1 <= i < members(): each member begins with a different one.
  int peer(int i) const { return (me + i) % members(); }
  // Return the place of a member among the peers of this one, the member at a place, and the place of this one among the peers
  // of a member.
  int place(int member) const { return member < me ? member : member - 1; }
  int member_at(int place) const { return place < me ? place : place + 1; }
  int place_at(int member) const { return me < member ? me : me - 1; }
};

}  // namespace fccl::core
