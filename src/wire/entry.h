// Entry: a message from one member of a column to another. It carries a call, tells how much landing is free again, or is an
// aside.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/signature.h"

namespace fccl::core {

// Counts the peer's notices, and the payloads among them, that a rank has taken; a message carries both counts.
struct NoticesTaken {
  uint32_t notices = 0;
  uint32_t payloads = 0;

  uint64_t packed() const { return static_cast<uint64_t>(payloads) << 32 | notices; }
  static NoticesTaken of(uint64_t packed) { return {static_cast<uint32_t>(packed), static_cast<uint32_t>(packed >> 32)}; }
};

// The first 64 bytes of a message; a call's small payload follows them. Plain bytes in this processor's byte order, which all
// hosts share.
struct EntryMessage {
  // An aside has only channel and token, and its content behind them.
  enum Kind : uint8_t { kCall = 1, kCredit = 2, kNotice = 3, kAside = 4 };

  uint32_t channel = 0;  // the receiver's number for this lane and sender
  Kind kind = kCredit;
  uint32_t sequence = 0;  // number of the lane's call; for a notice, its number among those of its sender
  uint32_t hash = 0;
  SignatureWords signature;
  // The token that the receiver has told only its peers; a message without it does not come from a peer.
  uint64_t token = 0;
  uint64_t number = 0;    // the call's; on the lane of a NoticeLane the notices taken, as NoticesTaken packs them
  uint64_t consumed = 0;  // number of the receiver's messages that the sender has taken out of their landing

  void set_call(const CallInFull& call) {
    signature = words_of(call.signature);
    number = call.number;
  }
  CallInFull call() const { return {number, signature_of(signature)}; }
};
static_assert(sizeof(EntryMessage) == 64 && std::is_trivially_copyable_v<EntryMessage>);

}  // namespace fccl::core
