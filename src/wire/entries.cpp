// Sends entries to peers, and reads theirs.
#include "wire/entries.h"

#include "base/check.h"
#include "kernels/copy.h"
#include "wire/lane.h"
#include "wire/port.h"

namespace fccl::core {

WireEntries::WireEntries(WireLane& lane)
    : lane_(lane), sequence_(lane.port().shape().first_sequence - 1), posted_(lane.port().peers.size()) {}

EntryBox& WireEntries::box_of(int member) const { return lane_.port().peers[lane_.place(member)].boxes[sequence_ & 1]; }

void WireEntries::begin(const CallInFull& call) {
  ++sequence_;
  call_ = call;
  word_ = uint64_t{sequence_} << 32 | hash_of(call.signature, static_cast<uint32_t>(call.number));
  lane_.port().sequence.store(sequence_, std::memory_order_release);
}

Awaited WireEntries::may_enter(int member) const {
  const int parity = static_cast<int>(sequence_ & 1);
  const int place = lane_.place(member);
  const Port& port = lane_.port();
  return {&port.ends[port.end_of_entry(place, parity)].value, posted_[place][parity], lane_.rank_of(member)};
}

std::byte* WireEntries::payload_for(int member) const {
  return lane_.port().memory.entry(lane_.place(member), static_cast<int>(sequence_ & 1)) + sizeof(EntryMessage);
}

void WireEntries::enter(int member, size_t bytes) {
  check(bytes <= lane_.payload_bytes(), "a payload fits behind its entry");
  const int parity = static_cast<int>(sequence_ & 1);
  const int place = lane_.place(member);
  const Port& port = lane_.port();
  EntryMessage entry = lane_.landing().head_for(member);
  entry.set_call(call_);
  entry.kind = EntryMessage::kCall;
  entry.sequence = sequence_;
  entry.hash = static_cast<uint32_t>(word_);
  std::byte* const message = port.memory.entry(place, parity);
  copy_bytes(message, &entry, sizeof(entry));
  ++posted_[place][parity];
  lane_.post(member, {message, sizeof(entry) + bytes}, port.end_of_entry(place, parity));
}

// Calls by dissemination fill only some boxes. Another one may be so old that no order tells it from a newer one.
bool WireEntries::has_entered(int member) const {
  return box_of(member).word.load(std::memory_order_acquire) >> 32 == sequence_;
}

bool WireEntries::agrees(int member) const { return box_of(member).word.load(std::memory_order_relaxed) == word_; }

const CallInFull& WireEntries::call_of(int member) const { return member == lane_.me() ? call_ : box_of(member).call; }

std::span<const std::byte> WireEntries::payload_of(int member) const {
  const EntryBox& box = box_of(member);
  return {box.payload.data(), box.payload_bytes};
}

std::optional<CallInFull> WireEntries::call_numbered(uint64_t number, int member) const {
  for (const EntryBox& box : lane_.port().peers[lane_.place(member)].boxes)
    if (box.number.load(std::memory_order_acquire) == number) return box.call;
  return std::nullopt;
}

}  // namespace fccl::core
