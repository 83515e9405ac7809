// Posts and takes notices, eager payloads and slices in the boards, slots and rings of two ranks.
#include "transfers/host_pair.h"

#include <algorithm>
#include <bit>

#include "os/memory.h"

namespace fccl::core {
namespace {

// Two slices may be in the ring at once.
constexpr uint64_t kSlicesInRing = 2;

// Trusts the sender's word.
bool is_beside(const Notice& notice) {
  return notice.kind != Notice::kEager || notice.envelope().bytes() <= sizeof NoticeLine::beside;
}

}  // namespace

HostPair::HostPair(std::shared_ptr<Segment> segment, int rank, int peer)
    : segment_(std::move(segment)),
      rank_(rank),
      peer_(peer),
      eager_bytes_(segment_->shape().eager_bytes()),
      out_(&segment_->transfer_board(rank, peer)),
      in_(&segment_->transfer_board(peer, rank)) {}

bool HostPair::can_post() {
  if (posted_ - taken_there_ >= TransferBoard::kNotices) taken_there_ = out_->taken.value.load(std::memory_order_acquire);
  return posted_ - taken_there_ < TransferBoard::kNotices;
}

bool HostPair::has_free_slot() {
  if (free_slots_ != 0) return true;
  for (int slot = 0; slot < TransferBoard::kEagerSlots; ++slot)
    if (out_->releases.of_slot[slot].load(std::memory_order_acquire) == used_[slot]) free_slots_ |= 1U << slot;
  return free_slots_ != 0;
}

bool HostPair::post_eager(const Notice& notice, const void* payload, size_t bytes) {
  if (bytes > eager_bytes_ || !can_post() || !has_free_slot()) return false;
  const auto slot = static_cast<uint16_t>(std::countr_zero(free_slots_));
  free_slots_ &= free_slots_ - 1;
  ++used_[slot];
  NoticeLine& line = next_line_out(notice);
  line.notice.slot = slot;
  copy_bytes(bytes <= sizeof line.beside ? line.beside.data() : segment_->eager_slot(rank_, peer_, slot), payload, bytes);
  publish(line);
  return true;
}

void HostPair::post(const Notice& notice, const void* lent) {
  NoticeLine& line = next_line_out(notice);
  copy_bytes(line.beside.data(), static_cast<const void*>(&lent), sizeof lent);
  publish(line);
}

NoticeLine& HostPair::next_line_out(const Notice& notice) {
  NoticeLine& line = out_->notices[posted_ % TransferBoard::kNotices];
  line.notice = notice;
  return line;
}

void HostPair::publish(NoticeLine& line) { line.word.store(++posted_, std::memory_order_release); }

std::optional<TransferPair::Incoming> HostPair::next() {
  const NoticeLine& line = in_->notices[taken_ % TransferBoard::kNotices];
  if (line.word.load(std::memory_order_acquire) != taken_ + 1) return std::nullopt;
  const Notice notice = line.notice;
  if (is_beside(notice)) return Incoming{notice, line.beside.data()};
  return Incoming{notice, segment_->eager_slot(peer_, rank_, notice.slot % TransferBoard::kEagerSlots)};
}

// The peer writes its next notices over those that are taken, but nothing into a slot before its release.
const std::byte* HostPair::keep(const Incoming& next, std::vector<std::byte>& room) const {
  if (!is_beside(next.notice)) return next.payload;
  room.assign(next.payload, next.payload + sizeof NoticeLine::beside);
  return room.data();
}

void HostPair::take() { in_->taken.publish(++taken_); }

void HostPair::release(const Notice& notice) {
  const size_t slot = notice.slot % TransferBoard::kEagerSlots;
  in_->releases.of_slot[slot].store(++released_[slot], std::memory_order_release);
}

TransferPair::Moved HostPair::send(const std::byte* source, size_t bytes, int most, CopyBytes put) {
  const size_t ring = segment_->shape().transfer_ring_bytes(), slice = segment_->shape().transfer_slot_bytes();
  std::byte* const slots = segment_->transfer_ring(rank_, peer_);
  if (put_.slices == 0) take_pages(slots, ring);
  Moved moved;
  for (; moved.slices < most && moved.bytes < bytes; ++moved.slices) {
    if (put_.slices - out_->drained.value.load(std::memory_order_acquire) >= kSlicesInRing) break;
    const size_t size = std::min(slice, bytes - moved.bytes);
    put(slots + put_.at.offset(ring, size), source + moved.bytes, size);
    put_.at.pass(ring, size);
    out_->published.publish(++put_.slices);
    moved.bytes += size;
  }
  return moved;
}

TransferPair::Moved HostPair::receive(std::byte* target, size_t bytes, int most, CopyBytes copy) {
  const size_t ring = segment_->shape().transfer_ring_bytes(), slice = segment_->shape().transfer_slot_bytes();
  const std::byte* const slots = segment_->transfer_ring(peer_, rank_);
  Moved moved;
  for (; moved.slices < most && moved.bytes < bytes; ++moved.slices) {
    if (in_->published.value.load(std::memory_order_acquire) <= drained_.slices) break;
    const size_t size = std::min(slice, bytes - moved.bytes);
    copy(target + moved.bytes, slots + drained_.at.offset(ring, size), size);
    drained_.at.pass(ring, size);
    in_->drained.publish(++drained_.slices);
    moved.bytes += size;
  }
  return moved;
}

}  // namespace fccl::core
