// Inputs of a checked call, what must come of them, and how many elements differ.
//
// Inputs depend on (rank, index, trial). Where nothing is reduced they are arbitrary bits. Where integers are reduced they are
// arbitrary too, and sums and products wrap; only for an average they are so small that their sum does not. Where floats are
// reduced they are crafted so that every order of reducing, in any precision of at least the type's own, gives one exact
// result. So a right result is right to the bit: this finds lost, doubled, misplaced and stale elements, and leaves rounding to
// accuracy.h and to the library's own tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective.h"
#include "elements.h"
#include "encoding.h"

namespace fccl::perf {

// One checked call, as one rank sees it.
struct Trial {
  const Collective& collective;
  const ElementType& type;
  const Operator& op;
  Layout layout;
  Place place;
  std::uint64_t number;
};

// A hash in which every bit of its arguments reaches every bit of the result.
std::uint64_t hash_of(std::uint64_t trial, int rank, std::size_t index);

// Writes this rank's input, layout.send_count elements.
void fill_input(const Trial& trial, std::byte* send);
// Fills memory with a pattern that is no result.
void poison(std::byte* memory, std::size_t bytes);
// How many of the layout.recv_count elements of the result are not what they must be.
std::uint64_t count_wrong(const Trial& trial, const std::byte* recv);

}  // namespace fccl::perf
