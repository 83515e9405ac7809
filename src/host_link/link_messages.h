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

// Says how a leader's part ended: it said goodbye, or its connection ended without a goodbye.
enum class LinkEnd : uint8_t { goodbye, broken };

// The limit of every text: the segment keeps as much of a cause.
inline constexpr size_t kLinkTextLimit = 1019;
// The limits in bytes of what one leader gives to all, and of what all give.
inline constexpr size_t kBlobLimit = 4 << 20;
inline constexpr size_t kBlobsLimit = 64 << 20;

// A leader tells its parent what the leaders of its subtree give to all, and its children what all leaders give, by host.
struct Blobs {
  std::vector<std::string> of_hosts;
};

// A leader tells its children whom it waits for; and its parent whom it waits for among those below, "" = nobody.
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

// A leader passes on that no more is heard of a host from that host itself.
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

using LinkMessage = std::variant<Blobs, Awaiting, Failure, Departure, Cut, Goodbye, LongWait>;

// Returns how many bytes a message may have from one who gives what so many hosts give.
size_t message_limit(int hosts);

// Texts are cut to kLinkTextLimit.
std::string encode_link(const LinkMessage& message);
// Returns nothing for bytes that `encode_link` does not make. Ranks and hosts are not negative; the listener checks the rest.
std::optional<LinkMessage> decode_link(std::string_view bytes);

}  // namespace fccl::core
