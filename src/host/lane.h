// Lane: one rank's end of a sequence of collectives, as the loops that move the bytes use it.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/call.h"
#include "host/frame_memory.h"
#include "host/lane_slots.h"
#include "host/reach.h"
#include "kernels/copy.h"
#include "os/processors.h"
#include "segment/lane_board.h"
#include "segment/segment.h"

namespace fccl::core {

// Owned by a communicator; used only by the thread that runs the lane's current phase.
class Lane {
 public:
  // `numbers` holds the communicator's numbers of this host's ranks; `rank` is this rank's index in it.
  Lane(std::shared_ptr<Segment> segment, LaneId id, int rank, std::vector<int> numbers, uint32_t first_sequence)
      : sources(segment->shape().ranks),
        scalars(segment->shape().ranks),
        reach(segment->shape().ranks),
        slots(*segment, id),
        segment_(std::move(segment)),
        rank_(rank),
        ranks_(segment_->shape().ranks),
        numbers_(std::move(numbers)),
        sequence_(first_sequence - 1) {
    for (int peer = 0; peer < ranks_; ++peer)
      views_.push_back({&segment_->board(peer, id), {segment_->payload(peer, id, 0), segment_->payload(peer, id, 1)}});
  }

  // Gives calls the long boxes of a host with more ranks than processors. All ranks of the host call it between two calls.
  void use_long_boxes() {
    has_long_boxes_ = true;
    for (int peer = 0; peer < ranks_; ++peer)
      for (const int parity : {0, 1}) views_[peer].payloads[parity] = slots.long_payload(peer, parity);
  }
  size_t box_bytes() const { return has_long_boxes_ ? shape().long_box_bytes() : shape().box_bytes(); }

  // Ranks are numbered within the host; rank_of converts to the communicator's numbers.
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int rank_of(int peer) const { return numbers_[peer]; }
  // Returns the i-th peer after this rank, 1 <= i < ranks(). Each rank begins with a different peer.
  int peer(int i) const { return rank_ + i < ranks_ ? rank_ + i : rank_ + i - ranks_; }

  // Announces a call, with `bytes` bytes of payload beside the word, at most the mailbox size. No peer reads the range `own`.
  void enter(const Call& call, uint64_t number, const void* payload, size_t bytes, const ByteRange& own = {}) {
    ++sequence_;
    Box& box = my_board().boxes[parity()];
    word_ = (uint64_t{sequence_} << 32) | hash_of(call.signature, static_cast<uint32_t>(number));
    box.record.write({number, call.signature, call.scalar});
    if (const int here = current_processor(); here != processor_) {
      processor_ = here;
      my_board().processor.store(here, std::memory_order_relaxed);
    }
    const CopyBytes put = bytes < kTuning.least_put ? copy_bytes : slots.put;
    const auto* source = static_cast<const std::byte*>(payload);
    std::byte* place = place_of(rank_, bytes);
    if (own.offset != 0) put(place, source, own.offset);
    const size_t rest = own.offset + own.bytes;
    if (rest < bytes) put(place + rest, source + rest, bytes - rest);
    box.word.store(word_, std::memory_order_release);
  }
  // Returns the memory for the next call's payload, of the mailbox size. The caller fills it before enter, and then passes
  // enter at most 56 bytes for the word's own line. Peers read it by box_payload_of.
  std::byte* next_box_payload() const { return views_[rank_].payloads[(sequence_ + 1) & 1]; }
  const std::byte* box_payload_of(int peer) const { return views_[peer].payloads[parity()]; }
  // Returns the 56 bytes in the next word's own line. The caller fills them before enter, and passes enter no payload.
  std::byte* next_line() { return my_board().boxes[(sequence_ + 1) & 1].line.data(); }
  const std::byte* line_of(int peer) const { return views_[peer].board->boxes[parity()].line.data(); }
  Awaited entered(int peer) const {
    return {&views_[peer].board->boxes[parity()].word, uint64_t{sequence_} << 32, rank_of(peer)};
  }
  // True if the peer made the same call. Call it after entered(peer).
  bool agrees(int peer) const { return views_[peer].board->boxes[parity()].word.load(std::memory_order_relaxed) == word_; }
  CallRecord::Value record_of(int peer) const { return views_[peer].board->boxes[parity()].record.read(); }
  // Returns the payload that a peer put beside its word; `bytes` as the peer passed them.
  const std::byte* payload_of(int peer, size_t bytes) const { return const_cast<Lane*>(this)->place_of(peer, bytes); }

  // True if the rank, given by the communicator's number, is on this host and entered its last call on the calling thread's
  // processor.
  bool is_here(int rank) const {
    const auto found = std::find(numbers_.begin(), numbers_.end(), rank);
    if (found == numbers_.end()) return false;
    return views_[found - numbers_.begin()].board->processor.load(std::memory_order_relaxed) == current_processor();
  }

  // Slices are numbered across all calls of the lane; the next call begins with number slices().
  uint64_t slices() const { return passed_.slices; }
  const Strides& last_strides() const { return passed_.strides; }
  void count_slices(uint64_t used, const Strides& strides = {}) { passed_ = {passed_.slices + used, strides}; }
  // True if this rank has published the slice already, as it does with a first slice that it puts ahead.
  bool has_published(uint64_t slice) { return Awaited{&my_board().published.value, slice + 1, -1}.reached(); }
  LaneBoard& my_board() { return *views_[rank_].board; }
  Awaited published(int peer, uint64_t slices) const { return {&views_[peer].board->published.value, slices, rank_of(peer)}; }
  Awaited drained(int peer, uint64_t slices) const { return {&views_[peer].board->drained.value, slices, rank_of(peer)}; }
  Awaited results_published(int peer, uint64_t slices) const {
    return {&views_[peer].board->results_published.value, slices, rank_of(peer)};
  }
  Awaited unread(int peer, uint64_t slices) const { return {&views_[peer].board->unread.value, slices, rank_of(peer)}; }
  const SegmentShape& shape() const { return segment_->shape(); }
  bool has_failed() const { return segment_->failure().first.load(std::memory_order_acquire) != 0; }

  // The sources of the running reduction, by rank. A member, so that no call allocates.
  std::vector<const void*> sources;
  std::vector<Scalar> scalars;
  FrameMemory frame;
  Reach reach;
  LaneSlots slots;

 private:
  // The addresses of a rank's lines, looked up once.
  struct PeerView {
    LaneBoard* board;
    std::array<std::byte*, 2> payloads;
  };

  // All slices so far, and how those of the last call lay.
  struct Passed {
    uint64_t slices = 0;
    Strides strides;
  };

  int parity() const { return static_cast<int>(sequence_ & 1); }
  std::byte* place_of(int peer, size_t bytes) {
    Box& box = views_[peer].board->boxes[parity()];
    return bytes <= box.line.size() ? box.line.data() : views_[peer].payloads[parity()];
  }

  std::shared_ptr<Segment> segment_;
  int rank_;
  int ranks_;
  std::vector<int> numbers_;  // indexed by the rank within the host
  uint32_t sequence_;         // the number of the last call that began
  uint64_t word_ = 0;
  Passed passed_;
  int processor_ = -1;  // the processor that the board shows
  bool has_long_boxes_ = false;
  std::vector<PeerView> views_;  // indexed by rank
};

}  // namespace fccl::core
