// Sends notices one by one, and takes them in the order in which they were sent.
#include "wire/notice_lane.h"

#include "base/check.h"
#include "kernels/copy.h"
#include "wire/lane.h"
#include "wire/port.h"

namespace fccl::core {

Result<std::unique_ptr<NoticeLane>> NoticeLane::open(Endpoint& endpoint, const WireLaneShape& shape) {
  FCCL_TRY_ASSIGN(auto wire, WireLane::open(endpoint, shape));
  return std::unique_ptr<NoticeLane>(new NoticeLane(std::move(wire)));
}

NoticeLane::NoticeLane(std::unique_ptr<WireLane> wire)
    : wire_(std::move(wire)), eagers_(shape().ranks.size()), notices_posted_(static_cast<size_t>(shape().notices_out)) {}

NoticeLane::~NoticeLane() = default;

const PortShape& NoticeLane::shape() const { return wire_->port().shape(); }

PortPeer& NoticeLane::counts_of(int member) const { return wire_->port().peers[wire_->place(member)]; }

NoticesTaken NoticeLane::heard_of(int member) const {
  return NoticesTaken::of(counts_of(member).notices_heard.load(std::memory_order_acquire));
}

bool NoticeLane::can_notify(int member) const {
  const uint32_t sent = counts_of(member).notices_sent.load(std::memory_order_relaxed);
  if (sent - heard_of(member).notices >= static_cast<uint32_t>(shape().notices)) return false;
  // Credits must always find room.
  return free_notice() >= 0 && wire_->port().queues[0].room() > 4 * eagers_.size();
}

// Returns memory for a notice that holds none in flight; below zero if all do.
int NoticeLane::free_notice() const {
  const Port& port = wire_->port();
  for (int i = 1; i <= shape().notices_out; ++i) {
    const int next = (notice_ + i) % shape().notices_out;
    if (Awaited{&port.ends[port.end_of_notice(next)].value, notices_posted_[next], -1}.reached()) return next;
  }
  return -1;
}

bool NoticeLane::can_notify_eagerly(int member) const {
  return eagers_[wire_->place(member)] + shape().first_sequence - heard_of(member).payloads < kEagers && can_notify(member);
}

void NoticeLane::notify(int member, std::span<const std::byte> head, std::span<const std::byte> payload) {
  check(head.size() + payload.size() <= wire_->payload_bytes(), "a notice fits behind its entry");
  std::atomic<uint32_t>& sent = counts_of(member).notices_sent;
  EntryMessage entry = wire_->landing().head_for(member);
  entry.kind = EntryMessage::kNotice;
  entry.sequence = sent.load(std::memory_order_relaxed);
  notice_ = free_notice();
  check(notice_ >= 0, "the caller has asked whether it can notify");
  std::byte* message = wire_->port().memory.notice(notice_);
  copy_bytes(message, &entry, sizeof(entry));
  copy_bytes(message + sizeof(entry), head.data(), head.size());
  copy_bytes(message + sizeof(entry) + head.size(), payload.data(), payload.size());
  ++notices_posted_[notice_];
  sent.store(entry.sequence + 1, std::memory_order_release);
  wire_->post(member, {message, sizeof(entry) + head.size() + payload.size()}, wire_->port().end_of_notice(notice_));
}

void NoticeLane::notify_eagerly(int member, std::span<const std::byte> head, std::span<const std::byte> payload) {
  ++eagers_[wire_->place(member)];
  notify(member, head, payload);
}

std::span<const std::byte> NoticeLane::noticed(int member) const {
  const PortPeer& peer = counts_of(member);
  const uint32_t next = peer.notices_taken.load(std::memory_order_relaxed);
  const NoticeBox& box = peer.notices[next % static_cast<uint32_t>(shape().notices)];
  if (box.word.load(std::memory_order_acquire) != (uint64_t{1} << 32 | next)) return {};
  return {box.content.data(), box.bytes};
}

void NoticeLane::take(int member) {
  std::atomic<uint32_t>& taken = counts_of(member).notices_taken;
  const uint32_t next = taken.load(std::memory_order_relaxed) + 1;
  taken.store(next, std::memory_order_release);
  set_taken(member, {next, wire_->landing().taken(member).payloads});
}

void NoticeLane::release(int member) {
  const NoticesTaken& taken = wire_->landing().taken(member);
  set_taken(member, {taken.notices, taken.payloads + 1});
}

// A credit is due after half of what may wait here.
void NoticeLane::set_taken(int member, const NoticesTaken& taken) {
  const NoticesTaken& told = wire_->landing().told_taken(member);
  wire_->landing().set_taken(member, taken,
                             taken.notices - told.notices >= static_cast<uint32_t>(shape().notices / 2) ||
                                 taken.payloads - told.payloads >= kEagers / 2);
}

}  // namespace fccl::core
