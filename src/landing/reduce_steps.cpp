// Computes which bytes each copy of a step takes, and which addresses its kernel gets.
#include "landing/reduce_steps.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/rounding.h"
#include "device/landing.h"
#include "device/reduction.h"

namespace fccl::core {
namespace {

// A pair slot is a fourth of a gather slot, so that among eight ranks they take less than twice as much.
constexpr size_t kPairSlotsOfGatherSlot = 4;
// Slots begin where kernels read fastest.
constexpr size_t kAlignment = 256;
// Calls of less than a fourth of a slot bounce. No GPU has said yet where the border is.
constexpr size_t kLeastPart = 4;

}  // namespace

ReduceSteps::ReduceSteps(const Call& call, int rank, int ranks, size_t slot_bytes)
    : call_(call),
      rank_(rank),
      blocks_(call.input(ranks)),
      most_(slot_bytes / size_of(shares_results() ? call.signature.result_type() : call.signature.dtype)) {
  const size_t bytes = call.signature.bytes();
  if (shares_results()) blocks_ = Layout::of_many(rounded_up(divided_up(bytes, static_cast<size_t>(ranks)), kAlignment), bytes);
}

size_t ReduceSteps::bytes_of_slots(size_t gather_bytes, int ranks) {
  const size_t slots = LandingSlots::kSlots * static_cast<size_t>(ranks);
  return gather_bytes / LandingSlots::kSlots / kPairSlotsOfGatherSlot / kAlignment * kAlignment * slots;
}

bool ReduceSteps::serve(const Signature& signature, int ranks, size_t slot_bytes) {
  const Collective& row = signature.row();
  const bool adds_for_all = row.reduces && row.takers == Who::all && !row.is_uneven();
  if (!adds_for_all || !sum_kernel(signature.dtype, signature.op, signature.widens, static_cast<size_t>(ranks))) return false;
  return signature.count > 0 && Call{signature}.input(ranks).total() >= slot_bytes / kLeastPart;
}

// No block is longer than the first.
uint64_t ReduceSteps::count() const {
  return divided_up(blocks_.bytes(0) / size_of(call_.signature.dtype), most_) + (shares_results() ? 1 : 0);
}

size_t ReduceSteps::elements(int block, uint64_t step) const {
  const size_t all = blocks_.bytes(block) / size_of(call_.signature.dtype);
  return std::min(most_, all - std::min(all, step * most_));
}

const std::byte* ReduceSteps::input(int block, uint64_t step) const {
  return static_cast<const std::byte*>(call_.send) + blocks_.offset(block) + step * most_ * size_of(call_.signature.dtype);
}

Copy ReduceSteps::given(uint64_t step, int peer, std::byte* slot) const {
  return {slot, input(peer, step), elements(peer, step) * size_of(call_.signature.dtype)};
}

std::byte* ReduceSteps::result(uint64_t step) const {
  return static_cast<std::byte*>(call_.recv) + step * most_ * size_of(call_.signature.result_type());
}

Copy ReduceSteps::taken(uint64_t step, int from, const std::byte* slot) const {
  return {result(step) + blocks_.offset(from) * call_.signature.widening(), slot,
          elements(from, step) * size_of(call_.signature.result_type())};
}

Result<void> enqueue_sum(DeviceLane& lane, const Signature& signature, uint64_t number, const StepSum& sum) {
  const LandingSlots& landing = *lane.landing();
  const int me = landing.rank();
  const auto ranks = static_cast<size_t>(landing.ranks());
  std::array<const std::byte*, gpu::kMostSources> sources{}, factors{};
  for (int rank = 0; rank < landing.ranks(); ++rank) {
    const std::byte* const slot = rank == me ? nullptr : landing.device_pair_slot(me, rank, number);
    sources[static_cast<size_t>(rank)] = rank == me ? sum.own : slot + sum.first * size_of(signature.dtype);
    factors[static_cast<size_t>(rank)] = lane.memory().device_address(&lane.words().factors[static_cast<size_t>(rank)]);
  }
  return lane.reduce({signature.dtype, signature.op, signature.widens, sum.out, std::span(sources).first(ranks),
                      std::span(factors).first(ranks), sum.count, sum.blocks});
}

}  // namespace fccl::core
