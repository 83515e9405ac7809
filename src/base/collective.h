// Collective: what each collective does, as a table. Rooms derive their part from it; only where paths and plans are told
// apart do they go by a collective's name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fccl/fccl.h"

namespace fccl {

enum class Who : uint8_t { nobody, all, root };
// What a buffer is made of: one block of `count` elements, or one per rank. Block i of an input is for rank i, block i of an
// output is from rank i.
enum class Extent : uint8_t { one_block, block_per_rank };

// One row. Ranks may be those of a communicator or, where a whole host gives or takes, hosts.
struct Collective {
  const char* name;
  Who givers;
  Extent input;
  Who takers;
  Extent output;
  bool reduces;  // what is given is added, else laid side by side
  // Of one whose blocks have counts of their own, the collective of equal counts that does the same.
  std::optional<fcclColl_t> even_form = std::nullopt;

  static constexpr bool includes(Who who, int rank, int root) { return who == Who::all || (who == Who::root && rank == root); }
  constexpr bool gives(int rank, int root) const { return includes(givers, rank, root); }
  constexpr bool takes(int rank, int root) const { return includes(takers, rank, root); }
  constexpr bool moves(int from, int to, int root) const { return gives(from, root) && takes(to, root); }

  constexpr bool is_rooted() const { return givers == Who::root || takers == Who::root; }
  constexpr bool has_rank_blocks() const { return input == Extent::block_per_rank || output == Extent::block_per_rank; }
  // Every pair of ranks has a block of its own, so there are ranks x ranks blocks, not ranks.
  constexpr bool has_pairs() const { return input == Extent::block_per_rank && output == Extent::block_per_rank; }
  // Every rank has something else for every other one, or its data is added by its receiver.
  constexpr bool needs_pair_slots() const { return reduces || (givers == Who::all && input == Extent::block_per_rank); }
  constexpr bool is_uneven() const { return even_form.has_value(); }
  // What ranks other than this one give and take is not known to it.
  constexpr bool has_private_counts() const { return is_uneven() && has_pairs(); }
  // Every rank gets all that is given, as it was given.
  constexpr bool spreads() const { return !reduces && takers == Who::all && input == Extent::one_block; }
  // Every rank gets one block of each rank, laid side by side.
  constexpr bool gathers_on_all() const { return spreads() && output == Extent::block_per_rank; }
  // Every rank gets one block of each rank, and knows where it lies in that rank's input.
  constexpr bool takes_known_blocks() const { return gathers_on_all() || (has_pairs() && !has_private_counts()); }

  constexpr size_t input_blocks(int ranks) const { return input == Extent::block_per_rank ? static_cast<size_t>(ranks) : 1; }
  constexpr size_t output_blocks(int ranks) const { return output == Extent::block_per_rank ? static_cast<size_t>(ranks) : 1; }
  constexpr size_t most_blocks(int ranks) const { return std::max(input_blocks(ranks), output_blocks(ranks)); }
};

// Those that all ranks take part in: what comes behind them in fcclColl_t are sends and receives.
inline constexpr std::array<Collective, fcclCollSend> kCollectives{{
    {"AllReduce", Who::all, Extent::one_block, Who::all, Extent::one_block, true},
    {"Broadcast", Who::root, Extent::one_block, Who::all, Extent::one_block, false},
    {"Reduce", Who::all, Extent::one_block, Who::root, Extent::one_block, true},
    {"AllGather", Who::all, Extent::one_block, Who::all, Extent::block_per_rank, false},
    {"ReduceScatter", Who::all, Extent::block_per_rank, Who::all, Extent::one_block, true},
    {"Gather", Who::all, Extent::one_block, Who::root, Extent::block_per_rank, false},
    {"Scatter", Who::root, Extent::block_per_rank, Who::all, Extent::one_block, false},
    {"Barrier", Who::nobody, Extent::one_block, Who::nobody, Extent::one_block, false},
    {"AlltoAll", Who::all, Extent::block_per_rank, Who::all, Extent::block_per_rank, false},
    {"AllGatherV", Who::all, Extent::one_block, Who::all, Extent::block_per_rank, false, fcclCollAllGather},
    {"ReduceScatterV", Who::all, Extent::block_per_rank, Who::all, Extent::one_block, true, fcclCollReduceScatter},
    {"AlltoAllV", Who::all, Extent::block_per_rank, Who::all, Extent::block_per_rank, false, fcclCollAlltoAll},
}};

inline bool is_known(fcclColl_t collective) { return static_cast<unsigned>(collective) < kCollectives.size(); }
// Of a collective that is known.
inline constexpr const Collective& row_of(fcclColl_t collective) { return kCollectives[static_cast<size_t>(collective)]; }
// The collective of equal counts that does the same; another one, itself.
inline constexpr fcclColl_t even_form(fcclColl_t collective) { return row_of(collective).even_form.value_or(collective); }

}  // namespace fccl
