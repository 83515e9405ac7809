// Computes inputs and results element by element.
#include "verify.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fccl::perf {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are the low bytes of their bits");

constexpr std::byte kPoison{0xab};

// Chooses the sample of each index in a trial; equal on every rank.
HashStream sample_choice(const Trial& trial) { return {trial.number, -1}; }

// Calls visit(index in the block, bits) for `count` elements from `origin` on.
template <class Visit>
void visit_elements(const Trial& trial, Origin origin, std::size_t count, Visit visit) {
  if (trial.samples) {
    const Bits* bits = origin.rank == Origin::kEveryRank ? trial.samples->results() : trial.samples->inputs(origin.rank);
    const HashStream choice = sample_choice(trial);
    for (std::size_t index = 0; index < count; ++index) visit(index, bits[choice[origin.first + index] % Samples::kCount]);
    return;
  }
  const HashStream hashes(trial.number, origin.rank);
  const Bits mask = trial.type.family == Family::boolean ? 1 : ~Bits{0};
  for (std::size_t index = 0; index < count; ++index) visit(index, hashes[origin.first + index] & mask);
}

template <class Element>
void fill(const Trial& trial, std::byte* send) {
  visit_elements(trial, {trial.place.rank, 0}, trial.layout.send_count, [&](std::size_t index, Bits bits) {
    const auto element = static_cast<Element>(bits);
    std::memcpy(send + index * sizeof element, &element, sizeof element);
  });
}

template <class Element>
std::uint64_t count(const Trial& trial, const std::byte* recv) {
  std::uint64_t wrong = 0;
  std::size_t begin = 0, block_count = 0;
  for (std::size_t block = 0; begin < trial.layout.recv_count; ++block, begin += block_count) {
    block_count = trial.layout.block_count(block);
    const std::byte* start = recv + begin * sizeof(Element);
    visit_elements(trial, trial.collective.origin(trial.layout, trial.place, block), block_count,
                   [&](std::size_t index, Bits bits) {
                     Element element;
                     std::memcpy(&element, start + index * sizeof element, sizeof element);
                     wrong += element != static_cast<Element>(bits);
                   });
  }
  return wrong;
}

// Calls the instance of `use` for unsigned integers of the type's size.
template <class Use>
auto by_size(const ElementType& type, Use use) {
  switch (type.bytes) {
    case 1:
      return use(std::uint8_t{});
    case 2:
      return use(std::uint16_t{});
    case 4:
      return use(std::uint32_t{});
    default:
      return use(std::uint64_t{});
  }
}

}  // namespace

void fill_input(const Trial& trial, std::byte* send) {
  by_size(trial.type, [&](auto element) { fill<decltype(element)>(trial, send); });
}

void poison(std::byte* memory, std::size_t bytes) { std::fill_n(memory, bytes, kPoison); }

std::uint64_t count_overwritten(const std::byte* memory, std::size_t bytes) {
  return bytes - static_cast<std::size_t>(std::count(memory, memory + bytes, kPoison));
}

std::uint64_t count_wrong(const Trial& trial, const std::byte* recv) {
  return by_size(trial.type, [&](auto element) { return count<decltype(element)>(trial, recv); });
}

}  // namespace fccl::perf
