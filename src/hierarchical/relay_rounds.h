// RelayRounds: says which rounds a relay makes on a host for a call between hosts, and in which order.
//
//   up      for a slice: moves the ranks' contributions to the ranks that send them to other hosts, and to ranks of this host
//           that need them
//   down    for a slice: moves data of other hosts from the ranks that received it to the ranks that need it
//   closing only on hosts with ranks left over from the columns: these then know that all ranks of all hosts made the call
//
// The table lists the rounds of each collective on hosts with several ranks; relay_rounds_test.cpp reads it. "Unequal" means
// that some host has ranks left over from the columns. The last two columns say which blocks of a column go down, and on which
// ranks the rounds up provide the input of the wire.
//
//                  up                            down                     share         fed by up
//   AllGather      all hosts                     all hosts                other hosts'  all, if unequal or the plan hands on
//   ReduceScatter  all hosts                     all hosts, if unequal    this host's   all
//   AllReduce      all hosts                     all hosts                all           all
//   Reduce         all hosts                     root's host              all           all
//   Broadcast      root's host                   other hosts              all           root's host, not the root
//   Gather         root's host; all, if unequal  root's host              other hosts'  other hosts, if unequal
//   Scatter        root's host                   other hosts, if unequal  this host's   root's host, not the root
//   AlltoAll       all hosts                     all hosts                other hosts'  hosts with ranks left over
//   Barrier        none                          none                     none          none
//
// AllGatherV, ReduceScatterV and AlltoAllV go through the rounds of their collectives of equal counts. In AlltoAll a block for
// each pair of ranks goes down.
#pragma once

#include <cstdint>

#include "base/collective.h"

namespace fccl::core {

// The facts that decide besides the collective, as a rank of the host sees them.
struct RelayFacts {
  int ranks = 1;              // ranks of this host
  int columns = 1;            // ranks of the smallest host
  bool is_even = true;        // no host has ranks left over
  bool root_is_here = false;  // on this host
  bool is_root = false;
  bool hands_on = false;  // the plan forwards chunks that came
};

// A value. The ranks of a host differ in `feeds_wire` alone.
struct RelayRounds {
  // Says which of a column's blocks go down on this host, by the hosts of their ranks.
  enum class Share : uint8_t { all, of_other_hosts, of_this_host };

  bool has_up = false, has_down = false;
  bool closes = false;
  Share share = Share::all;
  bool feeds_wire = false;  // the rounds up provide the wire's input
};

RelayRounds rounds_of(const Collective& row, const RelayFacts& facts);

enum class RoundKind : uint8_t { up, down, closing };

struct Round {
  RoundKind kind = RoundKind::up;
  uint64_t slice = 0;
  int turn = 0;  // counts the rounds of one kind and slice
};

// The rounds of one kind that each slice takes; 0: there are none.
struct Turns {
  int up = 0, down = 0;
};

// Walks the rounds of one call in their order. A value, the same on all ranks of the host.
class RoundSequence {
 public:
  // Each step sends slice k up and brings slice k - kStaged down, which keeps kStaged slices on the network. Staging memory has
  // room for as many.
  static constexpr uint64_t kStaged = 4;

  RoundSequence(uint64_t slices, Turns turns, bool closes) : slices_(slices), turns_(turns), closes_(closes) {}

  // Goes on to the first or the next round; false after the last one.
  bool next();
  const Round& round() const { return round_; }
  // True in the last round of its kind and slice.
  bool is_last_turn() const { return round_.turn + 1 == (round_.kind == RoundKind::up ? turns_.up : turns_.down); }
  // Returns the number of rounds that have ended.
  uint64_t ended() const { return ended_; }

 private:
  uint64_t slices_;
  Turns turns_;
  bool closes_;
  uint64_t step_ = 0;
  uint64_t ended_ = 0;
  Round round_{.turn = -1};
};

}  // namespace fccl::core
