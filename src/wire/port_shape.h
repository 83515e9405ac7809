// PortShape: the sizes of a port, which never change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fccl::core {

struct PortShape {
  std::vector<int> ranks;    // the peers' ranks in the communicator
  int window = 8;            // messages of one peer that may lie in their landing; a power of two
  size_t slot_bytes = 0;     // one message's; a multiple of 64
  int stages = 8;            // messages that may be in flight at once
  size_t payload_bytes = 0;  // limit of the payload after an entry
  uint32_t first_sequence = 0;
  uint64_t token = 0;  // peers must put this into their messages
  // Number of one peer's notices that may wait until they are taken, a power of two; 0: the port takes no notices. notices_out
  // is the number of notices to all peers that may be in flight.
  int notices = 0;
  int notices_out = 0;
  // Asides that may be in flight on a port of notices, whose memory lies behind that of notices: questions, and answers, of
  // which many may be due at once.
  static constexpr int kQuestions = 4;
  int answers() const { return std::min(peers(), 64); }

  int outgoing_notices() const { return notices_out + (notices > 0 ? kQuestions + answers() : 0); }
  int peers() const { return static_cast<int>(ranks.size()); }
  // Returns how many messages a rail should have room for: for each peer two entries, a credit and a late credit; with notices,
  // those that one peer may send, since few send at once.
  int messages() const { return notices > 0 ? 2 * peers() + notices : 4 * peers(); }
};

}  // namespace fccl::core
