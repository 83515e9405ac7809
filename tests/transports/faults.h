// Faults: what a simulated network does to those who use it, as a value.
#pragma once

namespace fccl::core::simulated {

// All zero: a network that keeps order and answers at once. Nothing here breaks the contract of Transport.
struct Faults {
  // Polls by which each fragment, end, `arrived` and message may be late; half of them are.
  int delay_polls = 0;
  // True if operations that are due at one poll come in any order.
  bool reorders = false;
  // Into how many fragments a write may be cut.
  int fragments = 1;
  // So many of a thousand fragments come twice, both times before their `arrived`.
  int duplicates_per_mille = 0;
  // So many of a thousand operations find the rail full, though it is not.
  int full_per_mille = 0;
  // So many of a thousand connects are refused.
  int refusals_per_mille = 0;
  // How many operations may be under way to a peer that has not polled since the first of them; 0 for any number.
  int operations_before_handshake = 0;
};

// The known faults of the efa provider: no order, fragments of packets, and a handshake for which the peer must poll.
inline Faults like_efa() { return {.delay_polls = 2, .reorders = true, .fragments = 4, .operations_before_handshake = 16}; }

// More than any provider is known to do.
inline Faults worse_than_efa() {
  return {.delay_polls = 9,
          .reorders = true,
          .fragments = 7,
          .duplicates_per_mille = 250,
          .full_per_mille = 200,
          .operations_before_handshake = 3};
}

}  // namespace fccl::core::simulated
