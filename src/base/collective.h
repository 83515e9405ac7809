// Collective: what each collective does, as a table. Every room derives its part from the table. Only the code that selects
// paths and plans looks at a collective's name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fccl/fccl.h"

namespace fccl::core {

enum class Who : uint8_t { nobody, all, root };
// The blocks of a buffer: one block of `count` elements, or one block per rank. Block i of an input goes to rank i; block i of
// an output comes from rank i.
enum class Extent : uint8_t { one_block, block_per_rank };

// One row of the table. "Rank" means a rank of the communicator, or a host when whole hosts exchange data.
struct Collective {
  const char* name;
  Who givers;
  Extent input;
  Who takers;
  Extent output;
  bool reduces;  // true: the givers' blocks are added; false: they are laid side by side
  // Set if each block has a count of its own: names the collective that does the same with equal counts.
  std::optional<fcclColl_t> even_form = std::nullopt;

  static constexpr bool includes(Who who, int rank, int root) { return who == Who::all || (who == Who::root && rank == root); }
  constexpr bool gives(int rank, int root) const { return includes(givers, rank, root); }
  constexpr bool takes(int rank, int root) const { return includes(takers, rank, root); }
  constexpr bool moves(int from, int to, int root) const { return gives(from, root) && takes(to, root); }

  constexpr bool is_rooted() const { return givers == Who::root || takers == Who::root; }
  constexpr bool has_rank_blocks() const { return input == Extent::block_per_rank || output == Extent::block_per_rank; }
  // Every pair of ranks has a block of its own, so there are ranks x ranks blocks, not ranks.
  constexpr bool has_pairs() const { return input == Extent::block_per_rank && output == Extent::block_per_rank; }
  // Each rank sends different data to every other rank, or the receiver reduces what it gets.
  constexpr bool needs_pair_slots() const { return reduces || (givers == Who::all && input == Extent::block_per_rank); }
  constexpr bool is_uneven() const { return even_form.has_value(); }
  // A rank knows only its own counts, not those of the other ranks.
  constexpr bool has_private_counts() const { return is_uneven() && has_pairs(); }
  // Every rank receives all the data unchanged.
  constexpr bool spreads() const { return !reduces && takers == Who::all && input == Extent::one_block; }
  // Every rank receives one block from each rank and lays them side by side.
  constexpr bool gathers_on_all() const { return spreads() && output == Extent::block_per_rank; }
  // Every rank receives one block from each rank and can compute its position in that rank's input.
  constexpr bool takes_known_blocks() const { return gathers_on_all() || (has_pairs() && !has_private_counts()); }

  constexpr size_t input_blocks(int ranks) const { return input == Extent::block_per_rank ? static_cast<size_t>(ranks) : 1; }
  constexpr size_t output_blocks(int ranks) const { return output == Extent::block_per_rank ? static_cast<size_t>(ranks) : 1; }
  constexpr size_t most_blocks(int ranks) const { return std::max(input_blocks(ranks), output_blocks(ranks)); }
};

// The collectives in which all ranks take part. The values of fcclColl_t from fcclCollSend on are sends and receives.
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
// Requires is_known(collective).
inline constexpr const Collective& row_of(fcclColl_t collective) { return kCollectives[static_cast<size_t>(collective)]; }
// Returns the collective that does the same with equal counts; an even collective returns itself.
inline constexpr fcclColl_t even_form(fcclColl_t collective) { return row_of(collective).even_form.value_or(collective); }

}  // namespace fccl::core
