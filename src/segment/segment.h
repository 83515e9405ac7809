// The segment: the memory that the ranks of one host share, and its layout.
//
//   header | statuses, waits of the ranks of all hosts | per rank: state, one board per lane | per rank and lane: 2 mailbox
//   payloads, a ring of 4 gather slots | pair slots of the pair lane: for each ordered pair (source, destination) a ring of 4 |
//   for each ordered pair, also of a rank with itself: transfer board, eager slots, a ring of 4 transfer slots or more
//
// The writer of a line owns it: a rank writes its own state, boards, payloads and slots, and reads those of all ranks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/peer_status.h"
#include "base/result.h"
#include "base/signature.h"
#include "os/descriptor.h"
#include "os/processors.h"
#include "segment/shrink_board.h"
#include "waiting/counter.h"

namespace fccl::core {

struct ArenaName;
struct TransferBoard;

// A communicator has several lanes, each with its own sequence, boxes and gather slots, so that a gather and a reduction can
// run at the same time. The collective decides the lane: one that needs pair slots takes the pair lane.
enum LaneId : int { kGatherLane = 0, kPairLane = 1, kLanes = 2 };

// The index after the lanes of collectives, at which a rank publishes the rank that its sends and receives wait for.
inline constexpr LaneId kTransferLane = kLanes;

inline LaneId lane_of(fcclColl_t collective) {
  return is_known(collective) && row_of(collective).needs_pair_slots() ? kPairLane : kGatherLane;
}

// Lists all lanes, `first` before the others.
inline std::array<LaneId, kLanes> lanes_from(LaneId first) {
  std::array<LaneId, kLanes> lanes{};
  for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<LaneId>((first + i) % kLanes);
  return lanes;
}

// The full call, for messages and for the factors of a pre-multiplied sum. The words are relaxed atomics, because a waiting
// rank may read a record while its owner already writes the next one.
class CallRecord {
 public:
  struct Value {
    uint64_t number = 0;
    Signature signature;
    Scalar scalar;
  };
  void write(const Value& value);
  // Decodes the signature from the words, in which a peer may have written anything.
  Value read() const;

 private:
  std::array<std::atomic<uint64_t>, 5> words_{};
};

// A rank's announcement of a call: the word that peers wait for, a small payload in the same line, then the full call. word =
// sequence of the lane (32 bits) | hash of the call.
struct alignas(64) Box {
  std::atomic<uint64_t> word{0};
  std::array<std::byte, 56> line{};
  alignas(64) CallRecord record;
};

// The data that one rank publishes on one lane. Boxes alternate; counters count slices and never decrease.
struct LaneBoard {
  std::array<Box, 2> boxes;
  Counter published;  // slices that this rank has put into its slots, or made ready for attach
  Counter drained;    // slices that this rank has read, from the root's slots, from its peers' (as root) or from peers' memory
  Counter results_published;  // reduced slices in this rank's gather slots or output, for AllReduce and Reduce
  Counter unread;             // 1 + the first slice of the last call in which this rank failed to read a peer's memory
  alignas(64) std::atomic<int> processor{-1};  // the processor on which the rank entered its last call
};

// The rank that a rank waits for, and the time when it last published that.
struct Waiting {
  uint64_t at_ms = 0;  // on the scale of to_ms
  int rank = -1;
};

// A word in a rank's own memory. A peer that reads it there knows that the memory belongs to this rank.
struct MemoryMark {
  uint64_t address = 0;
  uint64_t value = 0;
};

// The reason of a communicator's failure, as one rank saw it.
struct Cause {
  int32_t code = 0;
  std::array<char, 1020> text{};
};

struct alignas(64) RankState {
  // The rank awaited for so long that other hosts are told; -1: none.
  std::array<std::atomic<int32_t>, kLanes + 1> waits_long{-1, -1, -1};
  std::atomic<uint32_t> left{0};                            // 1 once the rank has finalized or destroyed its communicator
  std::array<std::atomic<uint64_t>, kLanes + 1> waiting{};  // written during long waits; read by peers that wait in turn
  // Numbers of calls on GPU memory, 0 before the first: the last one issued, and the last one that the rank's GPU has reached
  // on each lane.
  std::atomic<uint64_t> issued{0};
  std::array<std::atomic<uint64_t>, kLanes> begun{};
  Cause cause;                                  // written once, before it is offered as the first failure
  std::array<std::atomic<uint64_t>, 2> mark{};  // written before the rank is ready
  std::array<std::atomic<uint64_t>, 16>
      processors{};                              // a bit per processor that the rank may run on; written before it is ready
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

// The rank that reported the communicator's first failure. One atomic step sets it, after the rank has written its cause
// completely, so a rank that dies while it reports leaves no partial failure.
struct alignas(64) FirstFailure {
  std::atomic<uint32_t> first{0};  // 1 + the rank; 0: no failure
};

// The number of slots for slices of the maximum length. Two would suffice. Four fill a core's cache by default, so a slot has
// left the cache of the core that last read it when it is written again.
inline constexpr size_t kSlots = 4;

// The positions of a call's slices in the slots of a source: one after the other, packed closer if slices are shorter than a
// slot.
struct SlotRing {
  size_t stride;
  size_t places;

  SlotRing(size_t ring_bytes, size_t longest_slice)
      : stride(std::max<size_t>((longest_slice + 63) / 64 * 64, 64)), places(ring_bytes / stride) {}
  size_t offset(uint64_t slice) const { return slice % places * stride; }
};

// The positions of slices of any length between two ranks, which both compute alike. Two successive slices never overlap in a
// ring of three slots or more.
class SliceCursor {
 public:
  size_t offset(size_t ring_bytes, size_t size) const { return next_ + size <= ring_bytes ? next_ : 0; }
  void pass(size_t ring_bytes, size_t size) { next_ = offset(ring_bytes, size) + (size + 63) / 64 * 64; }

 private:
  size_t next_ = 0;
};

// The parameters of the layout; equal on all ranks.
struct SegmentShape {
  int ranks = 1;             // ranks of this host
  size_t mailbox_bytes = 0;  // size of a payload among many ranks
  size_t slot_bytes = 0;     // the longest slice in a gather slot; a multiple of 64
  int everybody = 1;         // ranks on all hosts

  // Returns the size of a payload. Among few ranks it is longer, because a rank then reads few payloads, and waits for them
  // only once.
  size_t box_bytes() const;
  // Returns the longest slice in a pair slot: as long as in a gather slot, but limited so that a rank's slots for all peers
  // stay under 3 MiB.
  size_t pair_slot_bytes() const;
  // Return the size of a source's slots: those for all its peers, or those for one peer.
  size_t gather_ring_bytes() const { return kSlots * slot_bytes; }
  size_t pair_ring_bytes() const { return kSlots * pair_slot_bytes(); }
  // Return the longest payload that travels with its notice, and the longest slice of a transfer.
  size_t eager_bytes() const;
  size_t transfer_slot_bytes() const;
  size_t transfer_ring_bytes() const;
  size_t total_bytes() const;
};

// A mapping of a segment, shared by the communicator's ranks in this process. Immutable but for the memory behind it; any
// thread may call. The memory stays valid after a peer's death.
class Segment {
 public:
  // Makes the memory and reserves what every call uses; a slot takes memory when a call first uses it. Refuses a segment that
  // is larger than the available memory. Error: fcclSystemError.
  static Result<Descriptor> make(const SegmentShape& shape);
  // Maps the memory, once per process. Error: fcclSystemError.
  static Result<std::shared_ptr<Segment>> map(const Descriptor& memory, const SegmentShape& shape);
  // Sets the initial words of a new communicator. The maker calls it before it hands the memory out.
  void initialise(uint32_t first_sequence);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const SegmentShape& shape() const { return shape_; }
  FirstFailure& failure() const { return *at<FirstFailure>(0); }
  // peer_status and awaited_beyond take the communicator's number of a rank; the other functions take numbers within the host.
  std::atomic<PeerStatus>& peer_status(int rank) const;
  // The rank for which a rank of another host said that it waits; -1: none.
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

}  // namespace fccl::core
