// Inputs of a checked call, what must come of them, and how many elements differ.
//
// Inputs depend on (rank, index, iteration). Where nothing is reduced they are arbitrary bits. Where something is, they are
// small integers whose sum every element type holds exactly, so that a right result is right to the bit whatever the order of
// the sum: this finds lost, doubled and misplaced elements, and leaves rounding to the library's own tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective.h"
#include "elements.h"

namespace fccl::perf {

// One checked call, as one rank sees it.
struct Trial {
  const Collective& collective;
  const ElementType& type;
  const Operator& op;
  Layout layout;
  Place place;
  std::uint64_t iteration;
};

// Writes this rank's input, layout.send_count elements.
void fill_input(const Trial& trial, std::byte* send);
// Fills memory with a pattern that is no sum of inputs.
void poison(std::byte* memory, std::size_t bytes);
// How many of the layout.recv_count elements of the result are not what they must be.
std::uint64_t count_wrong(const Trial& trial, const std::byte* recv);

}  // namespace fccl::perf
