// IntraHostRelay: runs the host's half of a call between hosts, as a sequence of rounds through the slots of the host's
// segment.
//
// In a round every rank fills its slots, or leaves them empty, publishes the round, and takes its data out of its peers' slots.
// Rounds are numbered through all calls of the lane, and a rank's slots alternate: a rank that has published round r has taken
// everything out of round r - 2, so no slot is overwritten too early. Every rank of a host goes through the same rounds.
// hierarchical/relay_rounds.h lists the rounds of each collective.
#pragma once

#include <cstdint>

#include "hierarchical/hierarchical_lane.h"
#include "hierarchical/relay_rounds.h"
#include "hierarchical/slot_walk.h"
#include "host/phases.h"
#include "kernels/copy.h"

namespace fccl::core {

// Lives in the frame of the phase of a call.
class IntraHostRelay {
 public:
  // `longest`: the bytes of the longest block of a call with a block for each pair of ranks.
  IntraHostRelay(Lane& lane, HierarchicalLane& hierarchical, const Task& task, size_t longest);

  // Begins the inter-host call; all ranks of the host must be known to have made the call.
  void begin();
  // Goes on to the next round; false after the last one.
  bool next();
  // Returns the current round's number among all rounds of the lane.
  uint64_t number() const { return round_; }
  bool begins_up() const { return kind_ == RoundKind::up; }
  // Returns the point that this rank must wait for before it puts.
  Awaited may_put() const;
  void put();
  void take(int peer);
  // Ends the round; every peer's part must have been taken.
  void finish();
  // Keeps the counts for the AlltoAllV; runs after the last round of the call that brought them.
  void keep_counts();

 private:
  using Share = RelayRounds::Share;

  bool is_column() const { return hierarchical_.inter_host_call != nullptr; }
  bool is_root() const { return lane_.rank_of(lane_.rank()) == signature_.root; }
  size_t piece_bytes(int block, uint64_t slice) const { return wire_plan_.pieces.elements_of(block, slice) * element_; }
  int items(int column) const;
  int place_of(int column, int item) const;
  int place_of_rank(int rank) const;
  int turns_of(RoundKind kind) const;
  SlotWalk walk(int items) const;
  int per_slot(RoundKind kind) const;
  int blocks_of_root() const;

  // For calls with a block for each pair of ranks, count the blocks that a rank puts for a peer in a round: up, to that peer
  // itself or to the column that brings them to other hosts; down, from the column that received them.
  bool has_pairs() const { return row_.has_pairs(); }
  bool is_carried(int local) const { return local >= hierarchical_.columns.columns(); }
  int items_up(int from, int to) const;
  void put_pairs();
  void put_pairs_up(int peer, std::byte* slot);
  void put_pairs_down(int peer, std::byte* slot);
  void take_pairs(int peer);
  void take_pairs_up(int peer, const std::byte* slot);
  void take_pairs_down(int peer, const std::byte* slot);
  void take_own_pairs_up();
  void take_own_pairs_down();
  size_t bytes_sent_to(int rank) const { return piece_of(task_.call.input(hierarchical_.columns.ranks()).bytes(rank)); }
  size_t bytes_taken_from(int rank) const { return piece_of(task_.call.output(hierarchical_.columns.ranks()).bytes(rank)); }
  size_t piece_of(size_t block_bytes) const { return wire_plan_.pieces.elements_in(block_bytes, slice_) * element_; }
  std::byte* sent_at(int rank) const {
    return bytes(task_.call.send) + task_.call.input(hierarchical_.columns.ranks()).offset(rank) + offset_;
  }
  std::byte* taken_at(int rank) const {
    return bytes(task_.call.recv) + task_.call.output(hierarchical_.columns.ranks()).offset(rank) + offset_;
  }

  RelayFacts facts() const;
  WireTask wire_task();
  WireSide of_user(const void* base, size_t begin) const;
  WireSide of_pairs(const Blocks& blocks, const Layout& layout, const void* base) const;
  WireSide staged(const Blocks& blocks, size_t element) const;
  WireSide input_side();
  WireSide input_of_pairs();
  WireSide output_side() const;
  WireSide output_of_pairs() const;
  // The pieces that this rank, which has a column, keeps for the wire.
  const WireSide& input() const { return hierarchical_.inter_host_call->input(); }
  const WireSide& output() const { return hierarchical_.inter_host_call->output(); }
  // True if the rounds up bring pieces into this rank's staging memory.
  bool stages_input() const { return is_column() && rounds_.feeds_wire && input().buffer.is_staging(); }

  void put_up();
  void put_partials();
  void put_from_root();
  void put_down();
  void take_up(int peer);
  void take_from_root(const std::byte* slot);
  void take_down(int peer);
  void add_partials();
  void take_own_up();
  void take_own_of_root();
  void take_own_down();

  // Inputs lie at the offsets of results with as many elements, scaled to the input's type.
  std::byte* send_at(int block) const {
    return bytes(task_.call.send) + ((blocks_.offset(block) + offset_) >> widening_shift_);
  }
  std::byte* recv_at(int block) const { return bytes(task_.call.recv) + blocks_.offset(block) + offset_; }
  static std::byte* bytes(const void* buffer) { return static_cast<std::byte*>(const_cast<void*>(buffer)); }

  Lane& lane_;
  HierarchicalLane& hierarchical_;
  const Task& task_;
  const Signature& signature_;
  const Collective& row_;
  WirePlan wire_plan_;
  size_t element_;      // bytes of the result's type
  int widening_shift_;  // an element of the result has 2^widening_shift_ times the bytes of an element of the input
  Layout blocks_;       // the user's buffers, in elements of the result
  bool root_is_here_;
  RelayRounds rounds_;
  RoundSequence sequence_;
  CopyBytes to_result_ = copy_bytes;  // copies into the user's buffer, which no peer reads in this call
  // State of the current round.
  RoundKind kind_ = RoundKind::up;
  uint64_t slice_ = 0, round_ = 0;
  int turn_ = 0;
  size_t offset_ = 0;  // begin of the slice in each block of the user's buffers
};

}  // namespace fccl::core
