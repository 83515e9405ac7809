// Computes which bytes each copy of a step takes.
#include "landing/steps.h"

#include <algorithm>

#include "base/rounding.h"

namespace fccl::core {

Steps::Steps(const Call& call, int rank, size_t slot_bytes) : call_(call), rank_(rank), piece_(slot_bytes) {}

uint64_t Steps::count() const { return divided_up(call_.signature.bytes(), piece_); }

size_t Steps::length(uint64_t step) const { return std::min(piece_, call_.signature.bytes() - offset(step)); }

std::byte* Steps::output(int from, uint64_t step) const {
  const bool by_rank = call_.signature.row().output == Extent::block_per_rank;
  const size_t block = by_rank ? static_cast<size_t>(from) * call_.signature.bytes() : 0;
  return static_cast<std::byte*>(call_.recv) + block + offset(step);
}

Copy Steps::given(uint64_t step, std::byte* slot) const {
  if (!gives(rank_)) return {};
  return {slot, static_cast<const std::byte*>(call_.send) + offset(step), length(step)};
}

Copy Steps::taken(uint64_t step, int peer, const std::byte* slot) const {
  if (!gives(peer)) return {};
  return {output(peer, step), slot, length(step)};
}

Copy Steps::kept(uint64_t step) const {
  if (!gives(rank_)) return {};
  const Copy copy{output(rank_, step), static_cast<const std::byte*>(call_.send) + offset(step), length(step)};
  return copy.to == copy.from ? Copy{} : copy;
}

}  // namespace fccl::core
