// SubCalls: how a call on GPU memory is cut into calls on host memory, and what is copied in before each of them and out after
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/call.h"
#include "device/device.h"

namespace fccl {

// Copies of one kind, as many entries of a queue as `count` says. A value.
struct Copies {
  Copy first;
  size_t count = 0;
  size_t to_step = 0;
  size_t from_step = 0;

  Copy operator[](size_t i) const {
    Copy copy = first;
    copy.to += i * to_step;
    copy.from += i * from_step;
    return copy;
  }
};

// By this thread, where both ends are host memory and may be touched.
void copy_on_host(const Copies& copies);

// Of one rank's call, whose buffers are addresses of the GPU. Sub-calls take the same elements of every block, so all ranks cut
// alike: by the signature, their number and the agreed size of the buffer. The host buffer of a sub-call holds its input and
// its output, in place where the collective works in place. A value; any thread may ask.
class SubCalls {
 public:
  // `most_pitch`: beyond it rows are copied one by one.
  SubCalls(const Call& call, int rank, int ranks, size_t buffer_bytes, size_t most_pitch);

  // The least buffer that any call of so many ranks fits into.
  static size_t least_buffer(int ranks) { return 2 * static_cast<size_t>(ranks) * sizeof(uint64_t); }

  // At least one, also where there are no elements.
  uint64_t count() const { return count_; }
  // On host memory, in a buffer that begins at `buffer`.
  Call sub_call(uint64_t part, std::byte* buffer) const;
  // Into the buffer, whose address on the GPU is given, and out of it; none where this rank gives or takes nothing.
  Copies in(uint64_t part, std::byte* buffer) const;
  Copies out(uint64_t part, std::byte* buffer) const;
  const Call& whole() const { return call_; }

 private:
  size_t first_of(uint64_t part) const { return part * most_elements_; }
  size_t elements_of(uint64_t part) const;
  Signature signature(uint64_t part) const;
  size_t output_offset(const Signature& part) const;
  size_t input_offset(const Signature& part) const;
  Copies rows(const Copy& row, size_t blocks) const;

  Call call_;
  const Collective* row_;
  int rank_;
  int ranks_;
  bool gives_;
  bool takes_;
  size_t most_pitch_;
  size_t most_elements_;  // of a block in a sub-call
  uint64_t count_;
};

}  // namespace fccl
