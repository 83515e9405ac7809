// Messages between the leaders of a communicator's hosts, as values and as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/peer_status.h"
#include "base/result.h"

namespace fccl::core {

// Says why nothing more is heard of a host: its leader said goodbye; the connection ended without a goodbye; or the hub, which
// passed on its news, is gone, and its state is unknown.
enum class LinkEnd : uint8_t { goodbye, broken, unheard };

// The limit of every text: the segment keeps as much of a cause.
inline constexpr size_t kLinkTextLimit = 1019;
// The limits of what one leader gives to all, and of what all give.
inline constexpr size_t kBlobLimit = 4 << 20;
inline constexpr size_t kBlobsLimit = 64 << 20;

// A leader tells the hub what it gives to all.
struct Blob {
  std::string bytes;
};

// The hub tells a leader what all leaders give, by host.
struct Blobs {
  std::vector<std::string> of_hosts;
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
  uint64_t last_call = 0;  // the number of the last call that the rank made
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

using LinkMessage = std::variant<Blob, Awaiting, Failure, Departure, Cut, Goodbye, LongWait, Blobs>;

// Returns how many bytes of a message a leader takes from the hub, and the hub from a leader, while they exchange.
size_t most_from_hub(int hosts);
size_t most_from_leader();

// Texts are cut to kLinkTextLimit.
std::string encode_link(const LinkMessage& message);
// Returns nothing for bytes that `encode_link` does not make. Ranks and hosts are not negative; the listener checks the rest.
std::optional<LinkMessage> decode_link(std::string_view bytes);

}  // namespace fccl::core
