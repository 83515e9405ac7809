// Chain: each member passes the root's data to the next. Slices follow one another, so a long broadcast crosses each link once.
#pragma once

#include "plan/steps.h"

namespace fccl::core::plan {

template <class Sink>
void chain_broadcast(Group group, Sink& sink) {
  const Slot all{Space::data, 0};
  for (int round = 0; round + 1 < group.members; ++round)
    sink.transfer({round, group.around(group.root + round), group.around(group.root + round + 1), all, all});
}

}  // namespace fccl::core::plan
