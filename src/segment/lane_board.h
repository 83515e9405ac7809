// LaneBoard: the calls that a rank announces on one lane, and how far it is with them, in the memory of its host.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/signature.h"
#include "segment/lane_id.h"
#include "waiting/counter.h"

namespace fccl::core {

inline LaneId lane_of(fcclColl_t collective) {
  return is_known(collective) && row_of(collective).needs_pair_slots() ? kPairLane : kGatherLane;
}

// The full call, for messages and for the factors of a pre-multiplied sum. The words are relaxed atomics, because a waiting
// rank may read a record while its owner already writes the next one.
class CallRecord {
 public:
  struct Value {
    uint64_t number = 0;
    Signature signature;
    Scalar scalar;
  };
  void write(const Value& value);
  // Decodes the signature from the words, in which a peer may have written anything.
  Value read() const;

 private:
  std::array<std::atomic<uint64_t>, 5> words_{};
};

// A rank's announcement of a call: the word that peers wait for, a small payload in the same line, then the full call. word =
// sequence of the lane (32 bits) | hash of the call.
struct alignas(64) Box {
  std::atomic<uint64_t> word{0};
  std::array<std::byte, 56> line{};
  alignas(64) CallRecord record;
};

// The data that one rank publishes on one lane. Boxes alternate; counters count slices and never decrease.
struct LaneBoard {
  std::array<Box, 2> boxes;
  Counter published;  // slices that this rank has put into its slots, or made ready for attach
  // Slices that this rank has read, from the root's slots, from its peers' (as root) or from peers' memory. It also counts
  // those that other ranks read, once a call with a root has ended.
  Counter drained;
  Counter results_published;  // reduced slices in this rank's gather slots or output, for AllReduce and Reduce
  Counter unread;             // 1 + the first slice of the last call in which this rank failed to read a peer's memory
  alignas(64) std::atomic<int> processor{-1};  // the processor on which the rank entered its last call
};

}  // namespace fccl::core
