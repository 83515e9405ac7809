// Each attack posts one operation with bytes that are mixed from its number: writes, reads, messages and forged entries.
#include "attack/attacks.h"

#include <array>
#include <cstring>

#include "wire/entry.h"

namespace fccl::core::attack {
namespace {

constexpr size_t kPiece = 8192;
// Keys that a careless library would give: counted from 0; then some that it would not.
constexpr uint64_t kLikelyKeys = 12;
constexpr size_t kLandingBytes = size_t{8} << 20;
// A little below the wrap, where every run begins.
constexpr uint32_t kFirstSequence = 0xfffffff0;
constexpr uint64_t kFirstMessage = UINT64_MAX - 5;

uint64_t mixed(uint64_t x) {
  x *= 0x9e3779b97f4a7c15;
  return x ^ x >> 29;
}

struct Place {
  uint64_t key;
  uint64_t offset;
};

// Walks through landing, region by region; every fourth key is none of the likely ones.
Place place_of(uint64_t number) {
  const uint64_t piece = number % (kLandingBytes / kPiece);
  const uint64_t key = number / (kLandingBytes / kPiece);
  return {number % 4 == 3 ? mixed(number) : key % kLikelyKeys, piece * kPiece};
}

ssize_t write(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  const Place place = place_of(number);
  return fi_write(end.endpoint(), end.bytes(), kPiece, end.descriptor(), peer, place.offset, place.key, nullptr);
}

ssize_t write_with_notice(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  const Place place = place_of(number);
  return fi_writedata(end.endpoint(), end.bytes(), 4, end.descriptor(), number, peer, place.offset, place.key, nullptr);
}

ssize_t empty_write_with_notice(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  return fi_writedata(end.endpoint(), end.bytes(), 0, end.descriptor(), number, peer, 0, number % kLikelyKeys, nullptr);
}

// Names no memory, so that there is no key to be checked.
ssize_t notice_without_memory(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  fi_msg_rma message{};
  message.addr = peer;
  message.data = number & 0xffff;
  return fi_writemsg(end.endpoint(), &message, FI_REMOTE_CQ_DATA | FI_COMPLETION);
}

ssize_t read(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  const Place place = place_of(number);
  return fi_read(end.endpoint(), end.bytes(), kPiece, end.descriptor(), peer, place.offset, place.key, nullptr);
}

ssize_t message_with_notice(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  return fi_senddata(end.endpoint(), end.bytes(), 64, end.descriptor(), number & 0xffff, peer, nullptr);
}

ssize_t garbage(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  static constexpr std::array<size_t, 6> kSizes{1, 63, 64, 2000, 4160, 9000};
  return fi_send(end.endpoint(), end.bytes(), kSizes[number % kSizes.size()], end.descriptor(), peer, nullptr);
}

// In memory that no other message uses while it may still be on its way.
ssize_t send_entry(FabricEnd& end, fi_addr_t peer, uint64_t number, const EntryMessage& entry) {
  std::byte* at = end.bytes() + number % 512 * sizeof entry;
  std::memcpy(at, &entry, sizeof entry);
  return fi_send(end.endpoint(), at, sizeof entry, end.descriptor(), peer, nullptr);
}

ssize_t entry(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  EntryMessage entry;
  entry.kind = EntryMessage::kCall;
  entry.channel = static_cast<uint32_t>(number % 8);
  entry.sequence = kFirstSequence + static_cast<uint32_t>(number / 8 % 4096);
  entry.token = number % 3 == 0 ? 0 : mixed(number);
  entry.number = number / 8 % 4096;
  entry.signature.count = 1;
  entry.consumed = kFirstMessage;
  return send_entry(end, peer, number, entry);
}

ssize_t credit(FabricEnd& end, fi_addr_t peer, uint64_t number) {
  EntryMessage credit;
  credit.channel = static_cast<uint32_t>(number % 8);
  credit.token = number % 3 == 0 ? 0 : mixed(number);
  credit.consumed = uint64_t{1} << 62;
  return send_entry(end, peer, number, credit);
}

constexpr std::array kAttacks{
    Attack{"write", write},
    Attack{"write_with_notice", write_with_notice},
    Attack{"empty_write_with_notice", empty_write_with_notice},
    Attack{"notice_without_memory", notice_without_memory},
    Attack{"read", read},
    Attack{"message_with_notice", message_with_notice},
    Attack{"garbage", garbage},
    Attack{"entry", entry},
    Attack{"credit", credit},
};

}  // namespace

std::span<const Attack> attacks() { return kAttacks; }

}  // namespace fccl::core::attack
