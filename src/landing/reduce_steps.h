// ReduceSteps: cuts one rank's part of a ReduceScatter into steps of a pair slot each, and lists what each step moves and adds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/call.h"
#include "device/device.h"
#include "device/lane.h"

namespace fccl::core {

// Each rank puts its next piece of every peer's block into its slot at that peer, and adds what the peers have put there to its
// own piece. All ranks cut alike, because only the signature and the agreed bytes of a slot decide. A value; any thread may
// ask.
class ReduceSteps {
 public:
  ReduceSteps(const Call& call, int rank, size_t slot_bytes) : call_(call), rank_(rank), slot_bytes_(slot_bytes) {}

  // Returns the bytes of a rank's pair slots, given those of its gather slots.
  static size_t bytes_of_slots(size_t gather_bytes, int ranks);
  // True if a GPU has a kernel for the call, and the call is not so short that it is faster through host memory.
  static bool serve(const Signature& signature, int ranks, size_t slot_bytes);

  const Signature& signature() const { return call_.signature; }
  uint64_t count() const;
  // Returns the copy from this rank's input into its slot at a peer.
  Copy given(uint64_t step, int peer, std::byte* slot) const;
  // Return this rank's own input of a step, the place of the result, and their elements.
  const std::byte* kept(uint64_t step) const;
  std::byte* result(uint64_t step) const;
  size_t elements(uint64_t step) const;

 private:
  size_t most_elements() const { return slot_bytes_ / size_of(call_.signature.dtype); }
  const std::byte* input(int block, uint64_t step) const;

  Call call_;
  int rank_;
  size_t slot_bytes_;
};

// The elements of a step that a kernel adds, from `first` on: where this rank's own lie, and the place of the result.
struct StepSum {
  const std::byte* own = nullptr;
  std::byte* out = nullptr;
  size_t first = 0;
  size_t count = 0;
  int blocks = 8;
};

// Enqueues the kernel for the step of this number on a lane with pair slots. The factors are those of LaneWords.
Result<void> enqueue_sum(DeviceLane& lane, const Signature& signature, uint64_t number, const StepSum& sum);

}  // namespace fccl::core
