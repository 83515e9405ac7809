// Values: what every member has in its chunks as a plan runs, by symbols; used by the check.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plan/run.h"

namespace fccl::core::plan {

using Value = int;
constexpr Value kNothing = 0;

// Symbolic values: what a member contributed to a chunk, and sums of two values. Equal values have equal numbers.
class Values {
 public:
  explicit Values(int members) : members_(members), next_(members * members + 1) {}

  Value of(int member, int chunk) const { return 1 + member * members_ + chunk; }

  // The tree over several values, split at the largest power of two below their number.
  Value sum(std::span<const Value> values);

 private:
  int members_;
  Value next_;
  std::map<std::pair<Value, Value>, Value> sums_;
};

// One slice, in an order that the waits allow. A value that refers to the run.
class Computation {
 public:
  Computation(const Trial& trial, const Run& run);

  std::string fault_of(const std::vector<int>& sorted);

 private:
  // A send that waits for nothing reads the input; values that arrive or are added go to the output. Messages of several chunks
  // bring both, and then the host has put the member's own chunk where results go.
  std::vector<Value>& output() { return is_one_memory_ ? input_ : output_; }
  int at(int m, int index) const { return m * n_ + trial_.group.around(index); }
  std::string stage(int number);
  std::string receive(int number);
  std::string add(int number);
  std::string fault_of_result(int m, int chunk);

  const Trial& trial_;
  const Run& run_;
  int n_;
  bool is_one_memory_ = false;
  Values values_;
  std::vector<Value> input_, output_, parts_;  // by member and chunk, or by member and whose part it is
  std::vector<std::vector<Value>> stages_;     // by the send that fills it
};

}  // namespace fccl::core::plan
