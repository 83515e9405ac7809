// check: proves the steps of all members of a group right for the executor that runs them; used by tests.
#pragma once

#include <string>
#include <vector>

#include "plan/catalog.h"
#include "plan/project.h"

namespace fccl::core::plan {

// A run of the members: every slice of a collective, as hierarchical/plan_executor.h does.
struct Trial {
  fcclColl_t collective;
  Cut cut;
  Group group;
  int window = 8;   // messages of one peer that landing holds, as communicators open their lanes
  int slices = 10;  // more than landing or staging memory holds
};

// Slices for which there is memory where pieces lie in no buffer of the user, as in hierarchical/relay_rounds.h.
inline constexpr int kStagedSlices = 4;

// Looks at the steps that will run, not at the algorithm that told them. The executor of a member is two cursors over the
// slices: one does the sends, in the order of the array, the other the receives and additions. docs/explanation/algorithms.md
// says what each waits for. Empty if all of this holds, else the first fault:
//  - the k-th send from one member to another meets the k-th receive there, and both ends agree on it;
//  - landing is freed in the order of arrival, since a peer is told how many messages are done with and not which;
//  - no wait closes a circle, with the credits as late as they may be, so that none waits for ever;
//  - nobody sends or adds what it does not have, or receives what it has; of a message that is staged once for several peers
//    the first counts;
//  - at the end each member has its result, and a sum is the tree over the members that docs/decisions/0002 prescribes;
//  - any two accesses of a member to the same memory, of which one writes, are ordered by what it always waits for.
std::string fault_of(const Trial& trial, const std::vector<Steps>& members);

}  // namespace fccl::core::plan
