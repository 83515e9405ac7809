// Inputs of reductions that have one exact result.
//
// Integers are arbitrary, and sums and products wrap; only for an average they are so small that their sum does not wrap.
// Floats are crafted so that every order of reducing, in any precision of at least the type's own, gives one exact result. So a
// right result is right in every bit: this finds lost, doubled, misplaced and stale elements, and leaves rounding to accuracy.h
// and to the library's own tests.
#pragma once

#include <cstddef>
#include <vector>

#include "elements.h"
#include "encoding.h"
#include "hash.h"

namespace fccl::perf {

// For one type, operator and number of ranks: many samples of the ranks' inputs, and of the results. A value that does not
// change once it is made.
class Samples {
 public:
  static constexpr std::size_t kCount = 1024;

  Samples(const ElementType& type, const Operator& op, int ranks);

  // Return the inputs of `rank`, and the results, of all samples.
  const Bits* inputs(int rank) const { return inputs_.data() + static_cast<std::size_t>(rank) * kCount; }
  const Bits* results() const { return results_.data(); }

 private:
  std::vector<Bits> inputs_;
  std::vector<Bits> results_;
};

}  // namespace fccl::perf
