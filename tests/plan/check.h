// check: proves the steps of all members of a group right, for one number of members and slices; used by tests.
#pragma once

#include <string>
#include <vector>

#include "plan/catalog.h"
#include "plan/project.h"

namespace fccl::plan {

// What the members run: every slice of a collective, in memory that slice s shares with slice s + window.
struct Trial {
  fcclColl_t collective;
  Cut cut;
  Group group;
  int slices = 3;
  int window = 2;
};

// Looks at the steps that will run, not at the algorithm that told them. Empty if all of this holds, else the first fault:
//  - every message has one sender and one receiver, who agree on it, and no two of a pair share a round;
//  - steps wait for one another without a circle, so that none waits for ever, and a round waits only for earlier ones;
//  - nobody sends or adds what it does not have, or receives what it has;
//  - at the end each member has its result, and a sum is the tree over the members that docs/decisions/0002 prescribes;
//  - any two accesses to the same slot of the same memory, of which one writes, are ordered by what happens before what. A
//    transfer reads and writes from the moment it is posted until it has arrived, as one-sided writes do, and the network
//    orders no two of them.
std::string fault_of(const Trial& trial, const std::vector<Steps>& members);

}  // namespace fccl::plan
