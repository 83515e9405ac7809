// The counts of collectives whose blocks have counts of their own: --uneven, and what follows from it for one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fccl::perf {

struct Place;

// Growing with the rank; the last rank's alone; all but the last rank's; any, zeros among them; as if the counts were equal.
enum class Uneven : std::uint8_t { linear, one_has_all, one_has_none, random, equal };

std::optional<Uneven> find_uneven(std::string_view name);
std::string_view name_of(Uneven uneven);

// The counts of one call, as one rank sees it. Blocks lie one behind the other.
struct UnevenCounts {
  std::vector<std::size_t> sent, received;  // by rank; none where the buffer is one block
  std::vector<std::size_t> begins;          // of each block of the result, where in its sender's input it begins
  std::size_t own = 0;                      // where this rank's block of the larger buffer begins
  std::size_t largest = 0;                  // elements of the largest buffer of any rank
  std::size_t busiest = 0;                  // the most elements that a rank sends to others or has from them

  std::size_t all_sent() const;
  std::size_t all_received() const;
};

// A block for each rank, of about `ranks` times `count` elements together.
UnevenCounts gathered_counts(Uneven uneven, std::size_t count, Place place);
UnevenCounts scattered_counts(Uneven uneven, std::size_t count, Place place);
// A block for each pair of ranks, none with more than `count` elements.
UnevenCounts exchanged_counts(Uneven uneven, std::size_t count, Place place);

}  // namespace fccl::perf
