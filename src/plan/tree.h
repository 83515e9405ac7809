// Tree: every member that has the root's data sends it on, which doubles their number in each round. Suits small broadcasts.
#pragma once

#include <algorithm>

#include "plan/steps.h"

namespace fccl::core::plan {

template <class Sink>
void tree_broadcast(Group group, Sink& sink) {
  const Slot all{Space::data, 0};
  for (int round = 0, holders = 1; holders < group.members; ++round, holders *= 2)
    for (int holder = 0; holder < std::min(holders, group.members - holders); ++holder)
      sink.transfer({round, group.around(group.root + holder), group.around(group.root + holder + holders), all, all});
}

}  // namespace fccl::core::plan
