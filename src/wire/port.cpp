// Routes completions of a rail to the counters and boxes of a lane.
#include "wire/port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/copy.h"

namespace fccl::core {

Port::Port(const PortShape& shape, int rails, uint32_t first_channel)
    : memory(shape),
      ends(static_cast<size_t>(shape.stages + 3 * shape.peers() + shape.outgoing_notices())),
      peers(shape.ranks.size()),
      sequence(shape.first_sequence - 1),
      shape_(shape),
      first_channel_(first_channel),
      arrived_(shape.ranks.size() * static_cast<size_t>(shape.window)) {
  check(shape.window >= 1 && shape.window <= kLargestWindow && (shape.window & (shape.window - 1)) == 0,
        "a window is a power of two that the bits of a message number can tell apart");
  for (int rail = 0; rail < rails; ++rail) queues.emplace_back(kMostStripes + 4 * shape.ranks.size() + shape.notices_out);
  for (auto& count : arrived_) count = kFirstMessage;
  for (PortPeer& peer : peers) {
    for (EntryBox& box : peer.boxes) {
      box.word = uint64_t{shape.first_sequence - 2} << 32;
      if (shape.notices == 0) box.payload.resize(shape.payload_bytes);
    }
    peer.notices = std::vector<NoticeBox>(static_cast<size_t>(shape.notices));
    peer.notices_sent = peer.notices_taken = shape.first_sequence;
    peer.notices_heard = NoticesTaken{shape.first_sequence, shape.first_sequence}.packed();
  }
}

void Port::post_message(PeerId to, std::span<std::byte> message, uint64_t note) {
  check(queues[0].room() > 0, "a queue has room for all entries and credits that can be on their way");
  queues[0].push({.kind = Operation::Kind::message,
                  .peer = to,
                  .memory = memory.outgoing_id(),
                  .local = message.data(),
                  .bytes = message.size(),
                  .remote = {},
                  .immediate = 0,
                  .tag = note});
}

bool Port::is_settled() const {
  return in_flight == 0 &&
         (closed || is_broken() || std::ranges::all_of(queues, [](const PostQueue& queue) { return queue.is_empty(); }));
}

int Port::still_taking() const {
  if (closed || is_broken()) return -1;
  const auto found = std::ranges::find_if_not(peers, [](const PortPeer& peer) {
    return peer.failed.load(std::memory_order_acquire) ||
           (peer.granted.load(std::memory_order_relaxed) == peer.sent.load(std::memory_order_acquire) &&
            NoticesTaken::of(peer.notices_heard.load(std::memory_order_relaxed)).notices ==
                peer.notices_sent.load(std::memory_order_acquire));
  });
  return found == peers.end() ? -1 : static_cast<int>(found - peers.begin());
}

void Port::on_arrival(int peer, uint32_t message_bits) {
  const uint64_t first = peers[peer].consumed.load(std::memory_order_acquire);
  const uint64_t ahead = (message_bits - first) & ((1 << kMessageBits) - 1);
  if (ahead >= static_cast<uint64_t>(shape_.window))
    return distrust(peer, fmt::format("it wrote message {} though the window begins at {}", message_bits,
                                      first & ((1 << kMessageBits) - 1)));
  std::atomic<uint64_t>& count = arrived(peer, first + ahead);
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

bool Port::on_message(int peer, std::span<const std::byte> bytes) {
  EntryMessage entry;
  std::memcpy(&entry, bytes.data(), sizeof(entry));
  if (entry.token != shape_.token) return false;
  const std::span<const std::byte> payload = bytes.subspan(sizeof(entry));
  if (entry.kind == EntryMessage::kAside && shape_.notices > 0) {
    if (asides != nullptr) asides->hear(peer, payload);
    return true;
  }
  if (entry.kind != EntryMessage::kCredit && entry.kind != (shape_.notices > 0 ? EntryMessage::kNotice : EntryMessage::kCall)) {
    distrust(peer, fmt::format("it sent a message of the unknown kind {}", static_cast<int>(entry.kind)));
    return true;
  }
  if (entry.kind == EntryMessage::kCall) on_call(peer, entry, payload);
  if (entry.kind == EntryMessage::kNotice) on_notice(peer, entry, payload);
  on_grant(peer, entry.consumed);
  if (shape_.notices > 0) on_notices_taken(peer, entry.number);
  return true;
}

// A peer is at most one call ahead, and enters a call only once.
void Port::on_call(int peer, const EntryMessage& entry, std::span<const std::byte> payload) {
  const uint32_t ahead = entry.sequence - sequence.load(std::memory_order_acquire);
  EntryBox& box = peers[peer].boxes[entry.sequence & 1];
  const bool repeated = static_cast<uint32_t>(box.word.load(std::memory_order_relaxed) >> 32) == entry.sequence;
  if (ahead > 1 || repeated || !name_a_call(entry.signature) || payload.size() > shape_.payload_bytes)
    return distrust(
        peer, fmt::format("it entered call {} of the lane with {} bytes, which cannot be", entry.sequence, payload.size()));
  box.call = entry.call();
  box.number.store(entry.number, std::memory_order_release);
  box.payload_bytes = payload.size();
  copy_bytes(box.payload.data(), payload.data(), payload.size());
  box.word.store(uint64_t{entry.sequence} << 32 | entry.hash, std::memory_order_release);
}

// Notices may overtake each other, and each comes once.
void Port::on_notice(int peer, const EntryMessage& entry, std::span<const std::byte> content) {
  PortPeer& sender = peers[peer];
  const uint32_t ahead = entry.sequence - sender.notices_taken.load(std::memory_order_acquire);
  const uint64_t word = uint64_t{1} << 32 | entry.sequence;
  const bool has_room = ahead < static_cast<uint32_t>(shape_.notices);
  NoticeBox* box = has_room ? &sender.notices[entry.sequence % static_cast<uint32_t>(shape_.notices)] : nullptr;
  if (box == nullptr || box->word.load(std::memory_order_relaxed) == word || content.size() > shape_.payload_bytes)
    return distrust(peer, fmt::format("it sent notice {} with {} bytes, which cannot be", entry.sequence, content.size()));
  if (box->content.size() < content.size()) box->content.resize(content.size());
  copy_bytes(box->content.data(), content.data(), content.size());
  box->bytes = content.size();
  box->word.store(word, std::memory_order_release);
}

// A report may have been overtaken by a later one.
void Port::on_notices_taken(int peer, uint64_t packed) {
  PortPeer& counts = peers[peer];
  const NoticesTaken now = NoticesTaken::of(packed),
                     before = NoticesTaken::of(counts.notices_heard.load(std::memory_order_relaxed));
  if (static_cast<int32_t>(now.notices - counts.notices_sent.load(std::memory_order_acquire)) > 0)
    return distrust(peer, "it took more notices than it was sent");
  if (static_cast<int32_t>(now.notices - before.notices) >= 0 && static_cast<int32_t>(now.payloads - before.payloads) >= 0)
    counts.notices_heard.store(packed, std::memory_order_release);
}

// Grants may overtake each other; an older one brings no news.
void Port::on_grant(int peer, uint64_t consumed) {
  PortPeer& counts = peers[peer];
  if (static_cast<int64_t>(consumed - counts.sent.load(std::memory_order_acquire)) > 0)
    return distrust(peer, "it took more messages than it was sent");
  if (static_cast<int64_t>(consumed - counts.granted.load(std::memory_order_relaxed)) > 0)
    counts.granted.store(consumed, std::memory_order_release);
}

void Port::on_end(uint64_t note) {
  Counter& end = ends[note & UINT32_MAX];
  end.publish(end.value.load(std::memory_order_relaxed) + 1);
}

void Port::on_failure(uint64_t note, const Error& error) {
  const int peer = static_cast<int>(note >> 32);
  fail_peer(peer, {MessageKind::network_failed,
                   fmt::format("sending to rank {} over the network failed: {}", shape_.ranks[peer], error.message)});
  on_end(note);
}

void Port::distrust(int peer, const std::string& why) {
  fail_peer(peer,
            {MessageKind::broke_protocol, fmt::format("rank {} does not keep to the protocol: {}", shape_.ranks[peer], why)});
}

void Port::fail_peer(int peer, Error error) {
  PortPeer& failing = peers[peer];
  if (!failing.failed.load(std::memory_order_relaxed)) {
    failing.error = std::move(error);
    failing.failed.store(true, std::memory_order_release);
  }
}

void Port::break_with(Error error) {
  if (!is_broken()) {
    error_ = std::move(error);
    broken_.store(true, std::memory_order_release);
  }
}

}  // namespace fccl::core
