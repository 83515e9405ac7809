// The counts of collectives whose blocks have counts of their own: --uneven, and the counts that it gives one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fccl::perf {

struct Place;

// Counts that grow with the rank; that are zero except on the last rank; that are zero on the last rank; that are random, with
// zeros among them; that are equal.
enum class Uneven : std::uint8_t { linear, one_has_all, one_has_none, random, equal };

std::optional<Uneven> find_uneven(std::string_view name);
std::string_view name_of(Uneven uneven);

// The counts of one call, as one rank sees it. Blocks follow one another.
struct UnevenCounts {
  std::vector<std::size_t> sent, received;  // by rank; empty if the buffer is one block
  std::vector<std::size_t> begins;          // begin of each block of the result in its sender's input
  std::size_t own = 0;                      // begin of this rank's block in the larger buffer
  std::size_t largest = 0;                  // elements of the largest buffer of any rank
  std::size_t busiest = 0;                  // the most elements that a rank sends to others or receives from them

  std::size_t all_sent() const;
  std::size_t all_received() const;
};

// Return a block for each rank, about `ranks` times `count` elements in all.
UnevenCounts gathered_counts(Uneven uneven, std::size_t count, Place place);
UnevenCounts scattered_counts(Uneven uneven, std::size_t count, Place place);
// Returns a block for each pair of ranks, none with more than `count` elements.
UnevenCounts exchanged_counts(Uneven uneven, std::size_t count, Place place);

}  // namespace fccl::perf
