// ReduceSteps: cuts one rank's part of a sum over all ranks into steps of a pair slot each, and lists what each step moves and
// adds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/call.h"
#include "device/device.h"
#include "device/lane.h"

namespace fccl::core {

// Each rank puts its next piece of every peer's block into its slot at that peer, and adds what the peers have put there to its
// own piece. The blocks of an AllReduce are equal shares of the vector, the last ones shorter or empty; each rank puts the
// results of its own into a slot, and takes those of all ranks in the next step. All ranks cut alike, because only the
// signature and the agreed bytes of a slot decide. A value; any thread may ask.
class ReduceSteps {
 public:
  ReduceSteps(const Call& call, int rank, int ranks, size_t slot_bytes);

  // Returns the bytes of a rank's pair slots, given those of its gather slots.
  static size_t bytes_of_slots(size_t gather_bytes, int ranks);
  // True if a GPU has a kernel for the call, and the call is not so short that it is faster through host memory.
  static bool serve(const Signature& signature, int ranks, size_t slot_bytes);

  const Signature& signature() const { return call_.signature; }
  // True if each rank takes the results of all, in the step after that in which they are added.
  bool shares_results() const { return call_.signature.row().output == call_.signature.row().input; }
  uint64_t count() const;
  // Returns the copy from this rank's input into its slot at a peer.
  Copy given(uint64_t step, int peer, std::byte* slot) const;
  // Return this rank's own input of a step, the place of its sum, which is the rank's result slot if all take the results, and
  // their elements.
  const std::byte* kept(uint64_t step) const { return input(rank_, step); }
  std::byte* added(uint64_t step, std::byte* result_slot) const { return shares_results() ? result_slot : result(step); }
  size_t elements(uint64_t step) const { return elements(rank_, step); }
  // Returns the copy from a rank's slot, which has its results of the step, into this rank's output.
  Copy taken(uint64_t step, int from, const std::byte* slot) const;

 private:
  size_t elements(int block, uint64_t step) const;
  const std::byte* input(int block, uint64_t step) const;
  std::byte* result(uint64_t step) const;

  Call call_;
  int rank_;
  Layout blocks_;  // of the input
  size_t most_;    // elements of a step
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
