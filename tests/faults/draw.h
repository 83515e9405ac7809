// Draw: one random choice of ranks, collective, moment and fault; equal seeds give equal draws.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "processes/trial.h"

namespace fccl::core::faults {

enum class Fault {
  kill,                // kill -9
  kill_two,            // kill -9 of two ranks at once
  segv,                // SIGSEGV
  exit_silently,       // _exit without destroying the communicator
  exit_after_destroy,  // _exit after it
  stop_briefly,        // SIGSTOP, and SIGCONT before the deadline
  stop_for_long,       // SIGSTOP beyond the deadline
  revoke,              // from another thread
  abort,               // from another thread, while the rank is inside a call
  mismatch,            // one rank's call differs
  skip,                // one rank leaves a call out
};

enum class Moment { before_init, in_init, idle, in_collective, in_split, at_end };

// In what a rank's call differs.
enum class Difference { collective, count, type, op, root, order };

enum class Size { zero, mailbox, odd, ring };

// A value; equal on all ranks of a run.
struct Draw {
  uint64_t seed = 0;
  int ranks = 2;
  testing::Recipe recipe;
  Size size = Size::mailbox;
  bool on_stream = false;
  bool by_sends = false;     // every rank sends to every one, in a group, in the place of the collective
  bool is_tagged = false;    // with a tag for each source
  bool in_group = false;     // the collectives of a moment are issued by one end of a group
  std::vector<int> host_of;  // by rank; empty: all on one host
  Moment moment = Moment::in_collective;
  Fault fault = Fault::kill;
  Difference difference = Difference::count;
  int victim = 0;
  int second_victim = -1;
  int warm_calls = 0;                 // right ones before the moment
  std::chrono::microseconds delay{};  // from the victim's coming to the moment until the fault
  std::chrono::milliseconds pause{};  // how long a brief stop lasts
  std::chrono::milliseconds deadline{};
  std::chrono::milliseconds init_deadline{};

  bool is_victim(int rank) const { return rank == victim || rank == second_victim; }
  // True if the fault ends the victims' processes.
  bool kills() const { return fault <= Fault::exit_after_destroy; }
  // Every other send. A rank that receives from any rank misses no rank that has left, and can name no rank that is late.
  bool receives_from_any() const { return is_tagged && fault != Fault::exit_after_destroy && fault != Fault::stop_for_long; }
  bool stops() const { return fault == Fault::stop_briefly || fault == Fault::stop_for_long; }
};

Draw draw_of(uint64_t seed);
std::string describe(const Draw& draw);

// The call of a mismatch's victim where the others call draw.recipe; for an order, the others call draw.recipe and then this.
testing::Recipe differing(const Draw& draw);
// A recipe as messages show it: "AllGather of 3 int32"; of one with counts that differ from block to block its name.
std::string shown_of(const testing::Recipe& recipe);

}  // namespace fccl::core::faults
