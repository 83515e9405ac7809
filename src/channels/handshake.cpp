// The steps of the handshake, and the framing of messages.
#include "channels/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "channels/bytes.h"

namespace fccl::core {
namespace {

constexpr std::string_view kMagic{"fccl\r\n\x1a\x01", 8};
constexpr size_t kLengthBytes = 4;

std::string preamble_of(const Party& party) {
  std::array<unsigned char, 32> nonce{};
  fill_random(nonce);
  Writer writer;
  writer.raw(kMagic);
  writer.number(party.version.protocol);
  writer.number(party.version.library);
  writer.number(int32_t{party.rank});
  writer.raw(view(nonce));
  return writer.bytes();
}

Party party_of(std::string_view preamble) {
  Reader reader(preamble);
  reader.raw(kMagic.size());
  Party party{};
  party.version.protocol = reader.number<uint32_t>();
  party.version.library = reader.number<uint32_t>();
  party.rank = reader.number<int32_t>();
  return party;
}

std::string length_of(std::string_view message) {
  Writer length;
  length.number(static_cast<uint32_t>(message.size()));
  return length.bytes();
}

Digest seal(const Key& key, uint64_t sequence, std::string_view message) {
  Writer head;
  head.number(sequence);
  head.number(static_cast<uint32_t>(message.size()));
  return digest(key, "message", {head.bytes(), message});
}

}  // namespace

std::string describe(const Party& party) {
  const std::string who = party.rank == kRootRank ? "the root" : fmt::format("rank {}", party.rank);
  const uint32_t library = party.version.library;
  return fmt::format("{} speaks protocol {}, library {}.{}.{}", who, party.version.protocol, library / 10000,
                     library / 100 % 100, library % 100);
}

std::string version_difference(const Party& a, const Party& b) {
  return fmt::format("{}, but {}: all ranks of a communicator need the same version of FCCL", describe(a), describe(b));
}

Conversation::Conversation(Role role, const Key& key, const Party& self)
    : role_(role), key_(key), self_(self), own_preamble_(preamble_of(self)) {
  // The listening end stays silent until the other has shown that it speaks FCCL.
  if (role == Role::connects) out_ = own_preamble_;
}

Result<void> Conversation::take(std::string_view arrived) {
  check(state_ != State::broken, "a broken conversation is dropped");
  in_.append(arrived);
  while (true) {
    Result<bool> went_on = step();
    if (!went_on) {
      state_ = State::broken;
      return fail(std::move(went_on).error());
    }
    if (!*went_on) return {};
  }
}

Result<bool> Conversation::step() {
  switch (state_) {
    case State::preamble:
      return take_preamble();
    case State::proof:
      return take_proof();
    default:
      return take_message();
  }
}

Result<bool> Conversation::take_preamble() {
  const size_t known = std::min(in_.size(), kMagic.size());
  if (std::string_view(in_).substr(0, known) != kMagic.substr(0, known))
    return fail(MessageKind::other_job, "the other end does not speak FCCL: another program has this port");
  if (in_.size() < kPreambleBytes) return false;
  peer_preamble_ = in_.substr(0, kPreambleBytes);
  in_.erase(0, kPreambleBytes);
  peer_ = party_of(peer_preamble_);
  if (role_ == Role::listens)
    out_ += own_preamble_;
  else
    out_ += view(proof_of(Role::connects));
  state_ = State::proof;
  return true;
}

Result<bool> Conversation::take_proof() {
  if (in_.size() < kProofBytes) return false;
  const Role theirs = role_ == Role::connects ? Role::listens : Role::connects;
  const bool proven = equal(proof_of(theirs), std::string_view(in_).substr(0, kProofBytes));
  in_.erase(0, kProofBytes);
  if (role_ == Role::listens) {
    const Digest answer = proven ? proof_of(Role::listens) : Digest{};
    out_ += view(answer);
  }
  if (!proven)
    return fail(MessageKind::other_job,
                "the other end does not hold the key of this unique id: the id belongs to another job, or "
                "another job has this port now");
  derive_keys();
  state_ = State::open;
  return true;
}

Result<bool> Conversation::take_message() {
  if (in_.size() < kLengthBytes) return false;
  const size_t length = Reader(std::string_view(in_).substr(0, kLengthBytes)).number<uint32_t>();
  if (length > limit_)
    return fail(fcclInvalidUsage, fmt::format("a message claims {} bytes, more than the {} that one may have", length, limit_));
  if (in_.size() < kLengthBytes + length + sizeof(Digest)) return false;
  const std::string_view message = std::string_view(in_).substr(kLengthBytes, length);
  const std::string_view claimed = std::string_view(in_).substr(kLengthBytes + length, sizeof(Digest));
  if (!equal(seal(inward_.key, inward_.sequence++, message), claimed))
    return fail(fcclInvalidUsage, "a message was changed, repeated or left out on its way");
  heard_.emplace_back(message);
  in_.erase(0, kLengthBytes + length + sizeof(Digest));
  return true;
}

void Conversation::say(std::string_view message) {
  check(open() && message.size() <= kMessageLimit, "messages are bounded and follow the handshake");
  std::string& end = end_of_outgoing();
  end += length_of(message);
  end += message;
  end += view(seal_next(message));
}

void Conversation::say(std::shared_ptr<const std::string> message) {
  check(open() && !shared_ && !message->empty(), "messages are shared one by one and follow the handshake");
  out_ += length_of(*message);
  const Digest digest = seal_next(*message);
  shared_ = Shared{std::move(message), 0, std::string(view(digest))};
}

std::string_view Conversation::outgoing() const {
  const std::string_view own = std::string_view(out_).substr(out_begin_);
  return own.empty() && shared_ ? std::string_view(*shared_->message).substr(shared_->sent) : own;
}

std::optional<std::string> Conversation::hear() {
  if (heard_.empty()) return std::nullopt;
  std::optional<std::string> message(std::move(heard_.front()));
  heard_.pop_front();
  return message;
}

void Conversation::sent(size_t bytes) {
  if (shared_ && out_begin_ == out_.size()) {
    shared_->sent += bytes;
    if (shared_->sent < shared_->message->size()) return;
    out_ = std::move(shared_->after);
    out_begin_ = 0;
    shared_.reset();
    return;
  }
  out_begin_ += bytes;
  // This bounds the buffer even if a peer never takes everything.
  if (out_begin_ < out_.size() - out_begin_) return;
  out_.erase(0, out_begin_);
  out_begin_ = 0;
}

Digest Conversation::proof_of(Role role) const {
  const std::string_view label = role == Role::connects ? "connects" : "listens";
  return digest(key_, label, {of_connector(), of_listener()});
}

Digest Conversation::seal_next(std::string_view message) { return seal(outward_.key, outward_.sequence++, message); }

void Conversation::derive_keys() {
  const Key by_connector = digest(key_, "key of the connecting end", {of_connector(), of_listener()});
  const Key by_listener = digest(key_, "key of the listening end", {of_connector(), of_listener()});
  outward_.key = role_ == Role::connects ? by_connector : by_listener;
  inward_.key = role_ == Role::connects ? by_listener : by_connector;
}

}  // namespace fccl::core
