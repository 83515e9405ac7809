// Memory: whether a member ever does two things to the same place of its buffers in no certain order; used by the check.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "plan/run.h"

namespace fccl::core::plan {

// A value that refers to the run. The network has no part in it: it reads stages, which a lane fills again when their sends
// have ended, and writes landing, which it is told of in the order in which it is free. So two accesses are ordered if the
// member itself does one after the other in every run.
class Memory {
 public:
  // `sorted`: all events, causes first.
  Memory(const Trial& trial, const Run& run, const Waits& waits, const std::vector<int>& sorted);

  // Empty, or the first pair of accesses in no order: with input and output apart, then with both in one buffer of the user.
  std::string fault();

 private:
  // The access of an event to a place.
  struct Access {
    int event;
    bool writes;
  };
  // The last event of each chain of a member that has surely happened.
  using Clock = std::array<int, Run::kChains>;

  void run_clocks(const Waits& waits, const std::vector<int>& sorted);
  std::string fault_of(int m, bool in_place);
  void add_host(int slice);
  void add_step(int slice, int number);
  std::vector<Access>& place(int slice, bool is_output, int chunk);
  bool ordered(const Access& a, const Access& b) const;
  bool has_race(const std::vector<Access>& accesses) const;

  const Trial& trial_;
  const Run& run_;
  int n_;
  std::vector<Clock> clocks_;         // by event
  std::vector<bool> brings_, wants_;  // by member and chunk
  int member_ = 0;                    // the member that is looked at
  bool in_place_ = false;
  std::vector<std::vector<Access>> places_;  // by slice, buffer and chunk
};

}  // namespace fccl::core::plan
