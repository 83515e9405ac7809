// Bruck: in each round every member sends all it has to one member, twice as far away as before; log2 n rounds, for any n.
#pragma once

#include <algorithm>

#include "plan/steps.h"

namespace fccl::core::plan {

// A member enters a round with its own slot and those of the distance - 1 members below it. The barrier uses the same algorithm
// on empty chunks: a member that has every chunk knows that every member has entered.
template <class Sink>
void bruck_all_gather(Group group, Sink& sink) {
  for (int round = 0, distance = 1; distance < group.members; ++round, distance *= 2) {
    const int count = std::min(distance, group.members - distance);
    everyone(group, distance, sink, [&](int from) {
      const Slot slots{Space::data, group.around(from - count + 1)};
      sink.transfer({round, from, group.around(from + distance), slots, slots, count});
    });
  }
}

}  // namespace fccl::core::plan
