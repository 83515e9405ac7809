// Inputs of a checked call, what must come of them, and how many elements differ.
//
// Inputs depend on (rank, index, trial). Where nothing is reduced they are arbitrary bits; where something is, each index has
// one of the samples of samples.h, another one in every trial.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective.h"
#include "elements.h"
#include "samples.h"

namespace fccl::perf {

// One checked call, as one rank sees it.
struct Trial {
  const Collective& collective;
  const ElementType& type;
  const Operator& op;
  const Samples* samples;  // of the type, the operator and the ranks; null where nothing is reduced
  Layout layout;
  Place place;
  std::uint64_t number;
};

// Writes this rank's input, layout.send_count elements.
void fill_input(const Trial& trial, std::byte* send);
// Fills memory with a pattern that is no result.
void poison(std::byte* memory, std::size_t bytes);
// How many bytes of poisoned memory are poison no more.
std::uint64_t count_overwritten(const std::byte* memory, std::size_t bytes);
// How many of the layout.recv_count elements of the result are not what they must be.
std::uint64_t count_wrong(const Trial& trial, const std::byte* recv);

}  // namespace fccl::perf
