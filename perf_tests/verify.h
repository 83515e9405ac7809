// Inputs of a checked call, their results, and the number of elements that differ.
//
// Inputs depend on (rank, index, trial). If the collective does not reduce, they are arbitrary bits; if it does, each index has
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
  const Samples* samples;  // samples of the type, the operator and the ranks; null if the collective does not reduce
  Layout layout;
  Place place;
  std::uint64_t number;
};

// Writes this rank's input, layout.send_count elements.
void fill_input(const Trial& trial, std::byte* send);
// Fills memory with a pattern that is not a result.
void poison(std::byte* memory, std::size_t bytes);
// Counts the bytes of poisoned memory that were overwritten.
std::uint64_t count_overwritten(const std::byte* memory, std::size_t bytes);
// Counts the elements of the result, out of layout.recv_count, that are wrong.
std::uint64_t count_wrong(const Trial& trial, const std::byte* recv);

}  // namespace fccl::perf
