// What the leaders of a communicator's hosts say to each other, as values and as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace fccl {

// What became of a rank.
enum class Gone : uint8_t { no, left, died };

// Why nothing more is heard of a host: its leader said goodbye; the connection ended without one; or the hub is gone, over
// which its news came, and nobody knows.
enum class LinkEnd : uint8_t { goodbye, broken, unheard };

// Of every text: as much as the segment keeps of a cause.
inline constexpr size_t kLinkTextLimit = 1019;
inline constexpr size_t kBlobLimit = 4 << 20;
inline constexpr size_t kPieceLimit = 4000;

// Some bytes of what the leader of `host` gives to all, in their order.
struct Piece {
  int host = 0;
  uint32_t left = 0;  // bytes from this piece on, it included
  std::string bytes;
};

// The hub says whom it waits for.
struct Awaiting {
  std::string whom;
};

// The communicator has failed, or will not come to be.
struct Failure {
  Error error;
};

struct Departure {
  int rank = 0;
  Gone how = Gone::died;
};

// The hub says that it hears nothing more of a host.
struct Cut {
  int host = 0;
  LinkEnd how = LinkEnd::broken;
};

struct Goodbye {};

// Nobody, where a rank is awaited.
inline constexpr int kNobody = -1;

// A rank has waited for another one so long that its own peers may be waiting for it, or does not wait for it any more.
struct LongWait {
  int rank = 0;
  int awaited = kNobody;
};

using LinkMessage = std::variant<Piece, Awaiting, Failure, Departure, Cut, Goodbye, LongWait>;

// Texts are cut to kLinkTextLimit.
std::string encode_link(const LinkMessage& message);
// Nothing for bytes that `encode_link` does not make. Ranks and hosts are not negative; the listener checks the rest.
std::optional<LinkMessage> decode_link(std::string_view bytes);

}  // namespace fccl
