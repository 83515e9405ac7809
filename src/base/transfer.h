// Transfer: the data that one send passes to one receive, as users request it and as ranks announce it to each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "fccl/fccl.h"

namespace fccl::core {

// The tag of transfers by fcclSend and fcclRecv. Users' tags are never negative.
inline constexpr int32_t kUntagged = -1;

// A send's description of its data. A receive takes the oldest send with its tag from its source; type and count must then be
// equal, too.
struct Envelope {
  int32_t tag = kUntagged;
  fcclDataType_t dtype = fcclInt8;
  size_t count = 0;

  // Requires a valid dtype.
  size_t bytes() const { return count * size_of(dtype); }
  bool operator==(const Envelope&) const = default;
};

enum class Direction : uint8_t { send, receive };

// One end of a transfer as its user asked for it.
struct TransferEnd {
  Direction direction = Direction::send;
  int peer = 0;  // the receiver's or sender's rank, or FCCL_ANY_SOURCE
  Envelope envelope;
  const void* source = nullptr;  // set by a send
  void* target = nullptr;        // set by a receive
  int* told_source = nullptr;    // where a receive stores its sender's rank; may be null

  fcclColl_t counted_as() const { return direction == Direction::send ? fcclCollSend : fcclCollRecv; }
  // True if the order in which one rank issued two ends decides which of them matches first.
  bool shares_order_with(const TransferEnd& other) const {
    return direction == other.direction && envelope.tag == other.envelope.tag &&
           (peer == other.peer || peer == FCCL_ANY_SOURCE || other.peer == FCCL_ANY_SOURCE);
  }
  // True if this receive matches a send from rank `from` with tag `tag`.
  bool takes(int from, int32_t tag) const { return envelope.tag == tag && (peer == from || peer == FCCL_ANY_SOURCE); }
};

// A message about a transfer from one rank to another. Plain bytes: a faulty peer may have written anything.
struct Notice {
  enum Kind : uint8_t {
    kEager = 1,  // the payload comes with the notice
    kOffer,      // the sender waits for a grant
    kGrant,      // the receiver is ready for the slices of an offer
    kRead,       // the receiver has read the offered bytes
  };
  Kind kind = kEager;
  uint8_t dtype = 0;
  uint16_t slot = 0;  // holds an eager payload
  int32_t tag = 0;
  uint64_t count = 0;
  uint64_t transfer = 0;  // the sender's number of an offer; grants and reads repeat it

  // An unknown type becomes fcclNumTypes, whose elements have no bytes.
  Envelope envelope() const {
    return {tag, static_cast<fcclDataType_t>(std::min<int>(dtype, fcclNumTypes)), static_cast<size_t>(count)};
  }
};
static_assert(sizeof(Notice) == 24);

// Examples: "Send of 1024 float32 to rank 3", "Recv of 1 int8 from any rank with tag 7".
std::string describe(const TransferEnd& transfer);

}  // namespace fccl::core
