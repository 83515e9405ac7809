// Steps: cuts one rank's part of a call into steps of a slot each, and lists the copies of each step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/call.h"
#include "device/device.h"

namespace fccl::core {

// A call in which ranks lay each other's bytes side by side, unchanged: a rank that gives puts its next piece into its slot,
// and each rank takes the pieces of the others. All ranks cut alike, because only the signature and the agreed bytes of a slot
// decide. A copy of no bytes stands for none. A value; any thread may ask.
class Steps {
 public:
  Steps(const Call& call, int rank, size_t slot_bytes);

  static bool serve(const Signature& signature) { return signature.row().spreads() && !signature.row().is_uneven(); }

  uint64_t count() const;
  // From this rank's input into its slot.
  Copy given(uint64_t step, std::byte* slot) const;
  // From a peer's slot into this rank's output.
  Copy taken(uint64_t step, int peer, const std::byte* slot) const;
  // From this rank's input into its own output, unless they are the same.
  Copy kept(uint64_t step) const;

 private:
  bool gives(int rank) const { return call_.signature.row().gives(rank, call_.signature.root); }
  size_t offset(uint64_t step) const { return step * piece_; }
  size_t length(uint64_t step) const;
  std::byte* output(int from, uint64_t step) const;

  Call call_;
  int rank_;
  size_t piece_;
};

}  // namespace fccl::core
