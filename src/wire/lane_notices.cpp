// The notices of a wire lane: sent one by one, and taken in the order in which they were sent.
#include "base/check.h"
#include "kernels/copy.h"
#include "wire/endpoint.h"
#include "wire/lane.h"

namespace fccl::core {

NoticesTaken WireLane::heard_of(int member) const {
  return NoticesTaken::of(port_->peers[place(member)].notices_heard.load(std::memory_order_acquire));
}

bool WireLane::can_notify(int member) const {
  const uint32_t sent = port_->peers[place(member)].notices_sent.load(std::memory_order_relaxed);
  if (sent - heard_of(member).notices >= static_cast<uint32_t>(shape_.notices)) return false;
  // Credits must always find room.
  return free_notice() >= 0 && port_->queues[0].room() > 4 * peers_.size();
}

// Returns memory for a notice that holds none in flight; below zero if all do.
int WireLane::free_notice() const {
  for (int i = 1; i <= shape_.notices_out; ++i) {
    const int next = (notice_ + i) % shape_.notices_out;
    const Counter& ended = port_->ends[port_->end_of_notice(next)];
    if (Awaited{&ended.value, notices_posted_[next], -1}.reached()) return next;
  }
  return -1;
}

bool WireLane::can_notify_eagerly(int member) const {
  return peer_of(member).eagers + shape_.first_sequence - heard_of(member).payloads < kEagers && can_notify(member);
}

void WireLane::notify(int member, std::span<const std::byte> head, std::span<const std::byte> payload) {
  check(head.size() + payload.size() <= payload_bytes_, "a notice fits behind its entry");
  Peer& peer = peer_of(member);
  std::atomic<uint32_t>& sent = port_->peers[place(member)].notices_sent;
  EntryMessage entry;
  entry.kind = EntryMessage::kNotice;
  entry.channel = peer.channel;
  entry.token = peer.token;
  entry.sequence = sent.load(std::memory_order_relaxed);
  entry.consumed = peer.told = consumed(member);
  peer.told_taken = peer.taken;
  entry.number = peer.taken.packed();
  notice_ = free_notice();
  check(notice_ >= 0, "the caller has asked whether it can notify");
  std::byte* message = port_->notice(notice_);
  copy_bytes(message, &entry, sizeof(entry));
  copy_bytes(message + sizeof(entry), head.data(), head.size());
  copy_bytes(message + sizeof(entry) + head.size(), payload.data(), payload.size());
  ++notices_posted_[notice_];
  sent.store(entry.sequence + 1, std::memory_order_release);
  push_message(member, message, sizeof(entry) + head.size() + payload.size(), port_->end_of_notice(notice_));
}

void WireLane::notify_eagerly(int member, std::span<const std::byte> head, std::span<const std::byte> payload) {
  ++peer_of(member).eagers;
  notify(member, head, payload);
}

std::span<const std::byte> WireLane::noticed(int member) const {
  const PortPeer& peer = port_->peers[place(member)];
  const uint32_t next = peer.notices_taken.load(std::memory_order_relaxed);
  const NoticeBox& box = peer.notices[next % static_cast<uint32_t>(shape_.notices)];
  if (box.word.load(std::memory_order_acquire) != (uint64_t{1} << 32 | next)) return {};
  return {box.content.data(), box.bytes};
}

void WireLane::take_notice(int member) {
  std::atomic<uint32_t>& taken = port_->peers[place(member)].notices_taken;
  peer_of(member).taken.notices = taken.load(std::memory_order_relaxed) + 1;
  taken.store(peer_of(member).taken.notices, std::memory_order_release);
  grants_wait_ |= grant_is_due(member);
}

void WireLane::release(int member) {
  ++peer_of(member).taken.payloads;
  grants_wait_ |= grant_is_due(member);
}

}  // namespace fccl::core
