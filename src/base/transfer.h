// Transfer: what one send gives to one receive, as users ask for it and as ranks tell each other of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "fccl/fccl.h"

namespace fccl {

// The tag of what fcclSend and fcclRecv move; users' tags are not below zero.
inline constexpr int32_t kUntagged = -1;

// What a send says of what it gives. A receive takes the oldest one with its tag from its source; type and count must then be
// equal, too.
struct Envelope {
  int32_t tag = kUntagged;
  fcclDataType_t dtype = fcclInt8;
  size_t count = 0;

  // Of an envelope whose type there is.
  size_t bytes() const { return count * size_of(dtype); }
  bool operator==(const Envelope&) const = default;
};

enum class Direction : uint8_t { send, receive };

// One end of a transfer as its user asked for it.
struct TransferEnd {
  Direction direction = Direction::send;
  int peer = 0;  // to whom or from whom; FCCL_ANY_SOURCE
  Envelope envelope;
  const void* source = nullptr;  // of a send
  void* target = nullptr;        // of a receive
  int* told_source = nullptr;    // where a receive puts the rank of its source, if anywhere

  fcclColl_t counted_as() const { return direction == Direction::send ? fcclCollSend : fcclCollRecv; }
  // Whether the order in which two ends of one rank were issued decides which of them comes first.
  bool shares_order_with(const TransferEnd& other) const {
    return direction == other.direction && envelope.tag == other.envelope.tag &&
           (peer == other.peer || peer == FCCL_ANY_SOURCE || other.peer == FCCL_ANY_SOURCE);
  }
  // Whether this receive takes what has this tag and comes from that rank.
  bool takes(int from, int32_t tag) const { return envelope.tag == tag && (peer == from || peer == FCCL_ANY_SOURCE); }
};

// What one rank tells another of a transfer. Plain bytes, and a peer may have written anything.
struct Notice {
  enum Kind : uint8_t {
    kEager = 1,  // the payload comes along
    kOffer,      // the sender waits to be granted
    kGrant,      // the receiver waits for the slices of an offer
    kRead,       // the receiver has read what was offered
  };
  Kind kind = kEager;
  uint8_t dtype = 0;
  uint16_t slot = 0;  // of an eager payload
  int32_t tag = 0;
  uint64_t count = 0;
  uint64_t transfer = 0;  // the sender's number: of an offer, and of the offer that is granted or has been read

  Envelope envelope() const { return {tag, static_cast<fcclDataType_t>(dtype), static_cast<size_t>(count)}; }
};
static_assert(sizeof(Notice) == 24);

// "Send of 1024 float32 to rank 3", "Recv of 1 int8 from any rank with tag 7".
std::string describe(const TransferEnd& transfer);

}  // namespace fccl
