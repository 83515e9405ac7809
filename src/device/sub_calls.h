// SubCalls: cuts a call on GPU memory into calls on host memory, and lists the copies before and after each of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/call.h"
#include "device/device.h"

namespace fccl::core {

// `count` equal copies at constant steps; each is one entry of a queue.
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
  size_t bytes() const { return count * first.rows * first.bytes; }
};

// Copies on this thread; both ends are host memory that it may touch.
void copy_on_host(const Copies& copies);

// Cuts one rank's call, whose buffers are GPU addresses. A sub-call takes the same elements of every block. All ranks cut
// alike, because only the signature, the number of ranks and the agreed buffer size decide. The host buffer of a sub-call holds
// its input and its output, in place if the collective works in place. A value; any thread may ask.
class SubCalls {
 public:
  // `most_pitch`: rows with a larger pitch are copied one by one.
  SubCalls(const Call& call, int rank, int ranks, size_t buffer_bytes, size_t most_pitch);

  // Returns the smallest buffer that holds a sub-call of any collective among `ranks` ranks.
  static size_t least_buffer(int ranks) { return 2 * static_cast<size_t>(ranks) * sizeof(uint64_t); }

  // At least 1, even for a call without elements.
  uint64_t count() const { return count_; }
  // Returns sub-call `part`, on host memory in a buffer that begins at `buffer`.
  Call sub_call(uint64_t part, std::byte* buffer) const;
  // Return the copies into the buffer and out of it; `buffer` is its GPU address. There are no copies on a rank that gives or
  // takes nothing.
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
  size_t most_elements_;  // the most elements of a block in one sub-call
  uint64_t count_;
};

}  // namespace fccl::core
