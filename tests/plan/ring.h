// The ring, as other libraries use it; what the catalog's algorithms are compared with.
#pragma once

#include "plan/steps.h"

namespace fccl::core::plan {

template <class Sink>
void ring_all_gather(Group group, Sink& sink) {
  for (int round = 0; round + 1 < group.members; ++round)
    everyone(group, 1, sink, [&](int from) {
      const Slot chunk{Space::data, group.around(from - round)};
      sink.transfer({round, from, group.around(from + 1), chunk, chunk});
    });
}

}  // namespace fccl::core::plan
