// The segment: the memory that the ranks of one host share, and its layout.
//
//   header | statuses, reporters, waits, lines, last calls of the ranks of all hosts | per rank: state, one board per lane |
//   per rank and lane: 2 mailbox payloads, 2 long ones, a ring of 4 gather slots | pair slots of the pair lane: for each
//   ordered pair (source, destination) a ring of 4 | for each ordered pair, also of a rank with itself: transfer board, eager
//   slots, a ring of 4 transfer slots or more
//
// The writer of a line owns it: a rank writes its own state, boards, payloads and slots, and reads those of all ranks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "base/result.h"
#include "os/descriptor.h"
#include "segment/lane_id.h"

namespace fccl::core {

enum class PeerStatus : uint8_t;
struct LaneBoard;
struct RankState;
struct TransferBoard;

// The rank that reported the communicator's first failure. One atomic step sets it, after the rank has written its cause
// completely, so a rank that dies while it reports leaves no partial failure.
struct alignas(64) FirstFailure {
  std::atomic<uint32_t> first{0};  // 1 + the rank; 0: no failure
};

// The number of slots for slices of the maximum length. Two would suffice. Four fill a core's cache by default, so a slot has
// left the cache of the core that last read it when it is written again.
inline constexpr size_t kSlots = 4;

// The parameters of the layout; equal on all ranks.
struct SegmentShape {
  int ranks = 1;             // ranks of this host
  size_t mailbox_bytes = 0;  // size of a payload among many ranks
  size_t slot_bytes = 0;     // the longest slice in a gather slot; a multiple of 64
  int everybody = 1;         // ranks on all hosts

  // Returns the size of a payload. It is longer between two ranks, because each then reads only one. A yet longer one would
  // take longer than slots: those have left the cache of their reader when they are written again.
  size_t box_bytes() const;
  // Returns the size of a payload on a host with more ranks than processors. Each time that ranks wait for each other costs a
  // context switch there, and a call waits once by payloads, but at least twice by slots.
  size_t long_box_bytes() const;
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
  // Makes the memory and reserves what every call uses; a rank's slots take memory when a call first uses them. Refuses a
  // segment that is larger than the available memory. Error: fcclSystemError.
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
  // These five take the communicator's number of a rank; the other functions take numbers within the host.
  std::atomic<PeerStatus>& peer_status(int rank) const;
  // The rank whose end ended the news of a rank of another host, written before its status; -1: none.
  std::atomic<int32_t>& reporter_beyond(int rank) const;
  // The rank for which a rank of another host said that it waits; -1: none.
  std::atomic<int32_t>& awaited_beyond(int rank) const;
  // The line of waits that begins with a rank of another host, as it told it and ToldLine packs it.
  std::atomic<uint64_t>& line_beyond(int rank) const;
  // The number of the last call of a rank of another host that has left or died, written before its status.
  std::atomic<uint64_t>& last_call_beyond(int rank) const;
  RankState& state(int rank) const;
  LaneBoard& board(int rank, LaneId lane) const;
  std::byte* payload(int rank, LaneId lane, int parity) const;
  std::byte* long_payload(int rank, LaneId lane, int parity) const;
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
