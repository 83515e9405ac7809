// HostPair: one rank's end of the transfers between it and another rank of its host, in both directions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "host/peer_memory.h"
#include "host/segment.h"
#include "host/transfer_board.h"
#include "kernels/copy.h"

namespace fccl::core {

// Owned by a rank's transfer lane; used by the one thread that has the lane's turn. No function waits; the can_ and has_
// functions tell what is possible now. Reading a line takes it from the peer's cache, so this rank reads it only if the last
// value no longer suffices.
class HostPair {
 public:
  // Ranks are numbered within the host. A rank has a pair with itself, too.
  HostPair(std::shared_ptr<Segment> segment, int rank, int peer)
      : segment_(std::move(segment)),
        rank_(rank),
        peer_(peer),
        out_(&segment_->transfer_board(rank, peer)),
        in_(&segment_->transfer_board(peer, rank)) {}

  // Send notices to the peer, with or without a payload.
  size_t eager_bytes() const { return segment_->shape().eager_bytes(); }
  bool can_post() {
    if (posted_ - taken_there_ >= TransferBoard::kNotices) taken_there_ = out_->taken.value.load(std::memory_order_acquire);
    return posted_ - taken_there_ < TransferBoard::kNotices;
  }
  bool can_post_eager() {
    if (free_slots_ == 0) look_for_free_slots();
    return can_post() && free_slots_ != 0;
  }
  void post(const Notice& notice) { publish(next_line_out(notice)); }
  void post_eager(Notice notice, const void* payload, size_t bytes) {
    notice.slot = static_cast<uint16_t>(std::countr_zero(free_slots_));
    free_slots_ &= free_slots_ - 1;
    ++used_[notice.slot];
    NoticeLine& line = next_line_out(notice);
    const bool is_beside = bytes <= sizeof line.beside;
    copy_bytes(is_beside ? line.beside.data() : segment_->eager_slot(rank_, peer_, notice.slot), payload, bytes);
    publish(line);
  }
  // Posts an offer with the address of the offered bytes in this process, if the peer may read them there.
  void post_offer(const Notice& notice, const void* source) {
    NoticeLine& line = next_line_out(notice);
    copy_bytes(line.beside.data(), static_cast<const void*>(&source), sizeof source);
    publish(line);
  }
  // Copies the bytes that the peer offers in its memory. Returns false if some could not be read.
  bool read(const PeerMemory& memory, void* target, const void* source, size_t bytes) const {
    return memory.read(peer_, target, source, bytes);
  }

  // Returns the peer's oldest notice that is not taken yet; null if all are taken. payload_of_next then finds an eager notice's
  // payload.
  const Notice* next() const {
    const NoticeLine& line = next_line();
    return line.word.load(std::memory_order_acquire) == taken_ + 1 ? &line.notice : nullptr;
  }
  const std::byte* payload_of_next(bool is_beside) const {
    return is_beside ? next_line().beside.data() : payload_in_slot(next_line().notice);
  }
  void take() { in_->taken.publish(++taken_); }
  // Returns the payload in a slot, of a notice that was taken but not released.
  const std::byte* payload_in_slot(const Notice& notice) const {
    return segment_->eager_slot(peer_, rank_, notice.slot % TransferBoard::kEagerSlots);
  }
  void release(const Notice& notice) {
    const size_t slot = notice.slot % TransferBoard::kEagerSlots;
    in_->releases.of_slot[slot].store(++released_[slot], std::memory_order_release);
  }

  // Send slices to the peer.
  size_t slice_bytes() const { return segment_->shape().transfer_slot_bytes(); }
  bool can_put() const { return put_ - out_->drained.value.load(std::memory_order_acquire) < 2; }
  void put(const void* bytes, size_t size) {
    copy_bytes(segment_->transfer_ring(rank_, peer_) + put_at_.offset(ring_bytes(), size), bytes, size);
    put_at_.pass(ring_bytes(), size);
    out_->published.publish(++put_);
  }

  // Take slices from the peer.
  bool has_slice() const { return in_->published.value.load(std::memory_order_acquire) > drained_; }
  const std::byte* slice(size_t size) const {
    return segment_->transfer_ring(peer_, rank_) + drained_at_.offset(ring_bytes(), size);
  }
  void drain(size_t size) {
    drained_at_.pass(ring_bytes(), size);
    in_->drained.publish(++drained_);
  }

 private:
  size_t ring_bytes() const { return segment_->shape().transfer_ring_bytes(); }
  const NoticeLine& next_line() const { return in_->notices[taken_ % TransferBoard::kNotices]; }
  NoticeLine& next_line_out(const Notice& notice) {
    NoticeLine& line = out_->notices[posted_ % TransferBoard::kNotices];
    line.notice = notice;
    return line;
  }
  void publish(NoticeLine& line) { line.word.store(++posted_, std::memory_order_release); }
  void look_for_free_slots() {
    for (int slot = 0; slot < TransferBoard::kEagerSlots; ++slot)
      if (out_->releases.of_slot[slot].load(std::memory_order_acquire) == used_[slot]) free_slots_ |= 1U << slot;
  }

  std::shared_ptr<Segment> segment_;
  int rank_;
  int peer_;
  TransferBoard* out_;
  TransferBoard* in_;
  uint64_t posted_ = 0, taken_ = 0;
  uint64_t taken_there_ = 0;  // as of this rank's last look; so is free_slots_
  uint64_t put_ = 0, drained_ = 0;
  SliceCursor put_at_, drained_at_;
  unsigned free_slots_ = 0;  // one bit per slot
  std::array<uint64_t, TransferBoard::kEagerSlots> used_{}, released_{};
};

}  // namespace fccl::core
