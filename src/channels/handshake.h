// Conversation: one end of an authenticated exchange of bounded messages, without any I/O.
//
//   connects                                listens
//   preamble  ----------------------------->            magic, protocol, library, rank, nonce: frozen for all versions
//             <-----------------------------  preamble
//   proof     ----------------------------->            keyed hash of (role, both preambles)
//             <-----------------------------  proof     zeros if the other's proof was wrong
//   messages  <---------------------------->  messages  length, payload, keyed hash of (sequence number, length, payload)
//
// The nonces make every proof fresh, so a recorded conversation cannot be played again; keys of the messages differ per
// conversation and direction. Before the proof holds, an end looks only at the preamble and the proof, which have a fixed size.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "channels/key.h"

namespace fccl::core {

inline constexpr size_t kPreambleBytes = 8 + 4 + 4 + 4 + 32;
inline constexpr size_t kProofBytes = sizeof(Digest);
// The limit of a message, unless the receiver has allowed more.
inline constexpr size_t kMessageLimit = 4096;
// The "rank" of the root, which is a thread next to the ranks.
inline constexpr int kRootRank = INT32_MIN;

struct Version {
  uint32_t protocol;
  uint32_t library;  // FCCL_VERSION_CODE

  bool operator==(const Version&) const = default;
};

inline constexpr Version kOwnVersion{11, FCCL_VERSION_CODE};

// Describes an end in its preamble; proved by the peer once the conversation is open.
struct Party {
  int rank;
  Version version = kOwnVersion;
};

// Returns "rank 3 speaks protocol 10, library 0.2.0".
std::string describe(const Party& party);
// Returns "rank 3 speaks ..., but the root speaks ...".
std::string version_difference(const Party& a, const Party& b);

enum class Role : uint8_t { connects, listens };

// A value of its owner; one thread at a time. After an error it accepts nothing more: drop it.
class Conversation {
 public:
  Conversation(Role role, const Key& key, const Party& self);

  // Takes bytes that arrived, in any portions. fcclInvalidUsage: the peer does not speak FCCL, has another key, or was tampered
  // with.
  Result<void> take(std::string_view arrived);

  // True once each end has shown that it holds the key. The owner must compare the versions before the first message.
  bool open() const { return state_ == State::open; }
  Role role() const { return role_; }
  const Party& self() const { return self_; }
  const Party& peer() const { return peer_; }

  // Allowed only once open; at most `kMessageLimit` bytes.
  void say(std::string_view message);
  // Says a message that many conversations share without a copy for each. It has at least a byte, and as many as the peer
  // allows. Another one may follow once nothing of it is outgoing.
  void say(std::shared_ptr<const std::string> message);
  // From now on a message of the peer may have so many bytes.
  void allow(size_t bytes) { limit_ = bytes; }
  // Returns the next whole message of the peer.
  std::optional<std::string> hear();

  // Returns the bytes to send next, which are nothing only if all is sent; `sent` removes them from the front.
  std::string_view outgoing() const;
  void sent(size_t bytes);

 private:
  enum class State : uint8_t { preamble, proof, open, broken };
  struct Direction {
    Key key{};
    uint64_t sequence = 0;
  };

  // A message that others share, between out_ and what was said after it.
  struct Shared {
    std::shared_ptr<const std::string> message;
    size_t sent = 0;
    std::string after;
  };

  Result<bool> step();  // false: more bytes are needed
  Result<bool> take_preamble();
  Result<bool> take_proof();
  Result<bool> take_message();
  std::string_view of_connector() const { return role_ == Role::connects ? own_preamble_ : peer_preamble_; }
  std::string_view of_listener() const { return role_ == Role::connects ? peer_preamble_ : own_preamble_; }
  Digest proof_of(Role role) const;
  void derive_keys();
  Digest seal_next(std::string_view message);
  std::string& end_of_outgoing() { return shared_ ? shared_->after : out_; }

  Role role_;
  Key key_;
  Party self_;
  Party peer_{};
  State state_ = State::preamble;
  std::string own_preamble_;
  std::string peer_preamble_;
  Direction inward_;
  Direction outward_;
  std::string in_;
  std::string out_;
  size_t out_begin_ = 0;
  std::optional<Shared> shared_;
  size_t limit_ = kMessageLimit;
  std::deque<std::string> heard_;
};

}  // namespace fccl::core
