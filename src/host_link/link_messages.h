// Messages between the leaders of a communicator's hosts, as values and as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/peer_status.h"
#include "base/result.h"

namespace fccl::core {

// Says why nothing more is heard of a host: its leader said goodbye; the connection ended without a goodbye; or the hub, which
// passed on its news, is gone, and its state is unknown.
enum class LinkEnd : uint8_t { goodbye, broken, unheard };

// The limit of every text: the segment keeps as much of a cause.
inline constexpr size_t kLinkTextLimit = 1019;
inline constexpr size_t kBlobLimit = 4 << 20;
inline constexpr size_t kPieceLimit = 4000;

// Some bytes of the blob that the leader of `host` gives to all, in order.
struct Piece {
  int host = 0;
  uint32_t left = 0;  // bytes that remain, including this piece
  std::string bytes;
};

// The hub says which rank it waits for.
struct Awaiting {
  std::string whom;
};

// The communicator has failed, or will not be made.
struct Failure {
  Error error;
};

struct Departure {
  int rank = 0;
  PeerStatus how = PeerStatus::died;
};

// The hub says that it hears no more of a host.
struct Cut {
  int host = 0;
  LinkEnd how = LinkEnd::broken;
};

struct Goodbye {};

// Stands for "no rank" in a wait.
inline constexpr int kNobody = -1;

// A rank has waited for another one so long that its own peers may be waiting for it, or has stopped waiting.
struct LongWait {
  int rank = 0;
  int awaited = kNobody;
};

using LinkMessage = std::variant<Piece, Awaiting, Failure, Departure, Cut, Goodbye, LongWait>;

// Texts are cut to kLinkTextLimit.
std::string encode_link(const LinkMessage& message);
// Returns nothing for bytes that `encode_link` does not make. Ranks and hosts are not negative; the listener checks the rest.
std::optional<LinkMessage> decode_link(std::string_view bytes);

}  // namespace fccl::core
