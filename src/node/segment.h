// The segment: the memory that the ranks of one host share, and how it is laid out.
//
//   header | fates and waits of the ranks of all hosts | per rank: state, one board per lane | per rank and lane: 2 mailbox
//   payloads, a ring of 4 gather slots | pair slots of the pair lane: for each ordered pair (source, destination) a ring of 4 |
//   for each ordered pair, also of a rank with itself: transfer board, eager slots, a ring of 4 transfer slots or more
//
// Whoever writes a line owns it: a rank writes its own state, boards, payloads and slots, and reads everybody's.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "arena/reservation.h"
#include "base/call.h"
#include "base/result.h"
#include "node/shrink_board.h"
#include "system/counter.h"
#include "system/descriptor.h"
#include "system/processors.h"

namespace fccl {

struct TransferBoard;

// A communicator has several lanes, each with its own sequence, boxes and gather slots, so that a gather and a reduction of one
// communicator run at the same time. The collective decides the lane: what needs pair slots takes the lane that has them.
enum LaneId : int { kGatherLane = 0, kPairLane = 1, kLanes = 2 };

// Where a rank says for whom its sends and receives wait: behind the lanes of the collectives.
inline constexpr LaneId kTransferLane = kLanes;

inline LaneId lane_of(fcclColl_t collective) {
  return is_known(collective) && row_of(collective).needs_pair_slots() ? kPairLane : kGatherLane;
}

// All lanes, `first` before the others.
inline std::array<LaneId, kLanes> lanes_from(LaneId first) {
  std::array<LaneId, kLanes> lanes{};
  for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<LaneId>((first + i) % kLanes);
  return lanes;
}

// The call in full, for messages and for the factors of a pre-multiplied sum. Relaxed atomics, because a rank that waits may
// look at a record while its owner is already writing the next one.
class CallRecord {
 public:
  struct Value {
    uint64_t number = 0;
    Signature signature;
    Scalar scalar;
  };
  void write(const Value& value);
  // The signature is what its words name: a peer may have written anything.
  Value read() const;

 private:
  std::array<std::atomic<uint64_t>, 5> words_{};
};

// Where a rank announces a call: the word that peers wait for, a small payload in the same line, the call in full behind it.
// word = sequence of the lane (32 bits) | hash of the call.
struct alignas(64) Box {
  std::atomic<uint64_t> word{0};
  std::array<std::byte, 56> line{};
  alignas(64) CallRecord record;
};

// What one rank publishes on one lane. Boxes alternate; counters count slices and never go back.
struct LaneBoard {
  std::array<Box, 2> boxes;
  Counter published;  // slices this rank has put into its slots, or brought in to be read by attach
  Counter drained;    // slices that this rank has read: from the root's slots, as the root from its peers', or in peers' memory
  Counter results_published;  // reduced slices that peers find in this rank's gather slots or output, for AllReduce and Reduce
  Counter unread;             // 1 + the first slice of the last call in which this rank could not read a peer's memory
  alignas(64) std::atomic<int> processor{-1};  // on which the rank entered its last call
};

// Whom a rank waits for, and when it last said so.
struct Waiting {
  uint64_t at_ms = 0;  // by to_ms
  int rank = -1;
};

// A word of a rank's own memory, by which peers that read that memory know that it is the rank's.
struct MemoryMark {
  uint64_t address = 0;
  uint64_t value = 0;
};

// Why a communicator failed, as one rank saw it.
struct Cause {
  int32_t code = 0;
  std::array<char, 1020> text{};
};

struct alignas(64) RankState {
  // For whom it has waited so long that other hosts are told; -1: for nobody.
  std::array<std::atomic<int32_t>, kLanes + 1> waits_long{-1, -1, -1};
  std::atomic<uint32_t> left{0};                            // 1 once the rank has finalized or destroyed its communicator
  std::array<std::atomic<uint64_t>, kLanes + 1> waiting{};  // written while a wait lasts long; read by peers that wait in turn
  // Numbers of calls on GPU memory, 0 before the first: the last one issued, and on each lane the last one that the rank's GPU
  // has come to.
  std::atomic<uint64_t> issued{0};
  std::array<std::atomic<uint64_t>, kLanes> begun{};
  Cause cause;                                  // written once, before it is offered to the failure board
  std::array<std::atomic<uint64_t>, 2> mark{};  // written before the rank is ready
  std::array<std::atomic<uint64_t>, 16>
      processors{};                              // a bit for each one that the rank may run on; written before it is ready
  std::array<std::atomic<uint64_t>, 4> arena{};  // written before the rank first offers memory of its arena
  ShrinkBoard shrink;

  void set_waiting(LaneId lane, const Waiting& value);
  Waiting get_waiting(LaneId lane) const;
  void set_processors(const Processors& allowed);
  Processors get_processors() const;
  void set_mark(const MemoryMark& value);
  MemoryMark get_mark() const;
  void set_arena(const ArenaName& value);
  ArenaName get_arena() const;
};

// What became of a rank of another host, as far as this host has heard. Written by the host's leader. Of one that is unheard or
// out of reach nothing more will be heard, since who would have told has left or died.
enum class Fate : uint8_t { present, left, died, out_of_reach, unheard };

// Whose cause is the communicator's first failure. One step takes it from none to a rank whose cause is written in full, so a
// rank that dies while it reports leaves no half of a failure.
struct alignas(64) FailureBoard {
  std::atomic<uint32_t> first{0};  // 1 + the rank, 0: none
};

// Slots of the longest slice. Two would do, but what is written should no longer be in a cache of the core that read it
// last, so the slots of a source fill a cache of a core by default.
inline constexpr size_t kSlots = 4;

// How the slices of a call lie in the slots of a source: one behind the other, also where they are shorter than a slot.
struct SlotRing {
  size_t stride;
  size_t places;

  SlotRing(size_t ring_bytes, size_t longest_slice)
      : stride(std::max<size_t>((longest_slice + 63) / 64 * 64, 64)), places(ring_bytes / stride) {}
  size_t offset(uint64_t slice) const { return slice % places * stride; }
};

// The same for slices of any lengths that go from one rank to one other, of which both keep count. Of two successive ones no
// byte is the same in a ring of three slots or more.
class SliceCursor {
 public:
  size_t offset(size_t ring_bytes, size_t size) const { return next_ + size <= ring_bytes ? next_ : 0; }
  void pass(size_t ring_bytes, size_t size) { next_ = offset(ring_bytes, size) + (size + 63) / 64 * 64; }

 private:
  size_t next_ = 0;
};

// What the layout depends on; equal on all ranks.
struct SegmentShape {
  int ranks = 1;             // of this host
  size_t mailbox_bytes = 0;  // one payload, among many ranks
  size_t slot_bytes = 0;     // the longest slice in a gather slot; a multiple of 64
  int everybody = 1;         // ranks of all hosts

  // One payload. Among few ranks it may be longer: what a rank reads of all others is little, and it waits for them once.
  size_t box_bytes() const;
  // The longest slice in a pair slot: as in a gather slot, but the slots of all peers of a rank stay under 3 MiB.
  size_t pair_slot_bytes() const;
  // All slots of a source for all of its peers, or for one.
  size_t gather_ring_bytes() const { return kSlots * slot_bytes; }
  size_t pair_ring_bytes() const { return kSlots * pair_slot_bytes(); }
  // Of a payload that goes along with its notice, and of a slice of a transfer.
  size_t eager_bytes() const;
  size_t transfer_slot_bytes() const;
  size_t transfer_ring_bytes() const;
  size_t total_bytes() const;
};

// One mapping of a segment, shared by the ranks of this process that belong to the communicator. Immutable but for the memory
// behind it; any thread may call. After a peer's death the memory stays valid.
class Segment {
 public:
  // Reserves the memory, so that running out of it shows while the communicator is made. Error: fcclSystemError.
  static Result<Descriptor> make(const SegmentShape& shape);
  // Maps it, once per process. Error: fcclSystemError.
  static Result<std::shared_ptr<Segment>> map(const Descriptor& memory, const SegmentShape& shape);
  // Sets the words that a new communicator starts from. By the maker, before it hands the memory out.
  void initialise(uint32_t first_sequence);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const SegmentShape& shape() const { return shape_; }
  FailureBoard& failure() const { return *at<FailureBoard>(0); }
  // Of any rank, as the communicator counts them; the other calls count within the host.
  std::atomic<Fate>& fate(int rank) const;
  // For whom a rank of another host has said that it waits; -1: for nobody.
  std::atomic<int32_t>& awaited_beyond(int rank) const;
  RankState& state(int rank) const;
  LaneBoard& board(int rank, LaneId lane) const;
  std::byte* payload(int rank, LaneId lane, int parity) const;
  std::byte* gather_ring(int rank, LaneId lane) const;
  std::byte* pair_ring(int source, int destination) const;
  TransferBoard& transfer_board(int source, int destination) const;
  std::byte* eager_slot(int source, int destination, int number) const;
  std::byte* transfer_ring(int source, int destination) const;

 private:
  Segment(std::byte* memory, const SegmentShape& shape) : memory_(memory), shape_(shape) {}
  size_t pair(int source, int destination) const {
    return static_cast<size_t>(source) * static_cast<size_t>(shape_.ranks) + static_cast<size_t>(destination);
  }
  template <class T>
  T* at(size_t offset) const {
    return std::launder(reinterpret_cast<T*>(memory_ + offset));
  }

  std::byte* memory_;
  SegmentShape shape_;
};

}  // namespace fccl
