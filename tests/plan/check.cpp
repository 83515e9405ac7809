// The proof: ends are joined, waits are sorted, then values are computed and accesses to memory held against the order.
#include "plan/check.h"

#include "plan/memory.h"
#include "plan/run.h"
#include "plan/values.h"

namespace fccl::core::plan {

std::string fault_of(const Trial& trial, const std::vector<Steps>& members) {
  Run run(trial, members);
  if (std::string fault = run.join(); !fault.empty()) return fault;
  const Waits waits = run.waits();
  const std::vector<int> sorted = waits.sort();
  if (sorted.size() < static_cast<size_t>(run.events())) return "steps wait for one another in a circle";
  if (std::string fault = Computation(trial, run).fault_of(sorted); !fault.empty()) return fault;
  return Memory(trial, run, waits, sorted).fault();
}

}  // namespace fccl::core::plan
