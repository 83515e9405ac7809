// Bruck: in each round everybody sends all it has to one member, twice as far away as before; log2 n rounds, for any n.
#pragma once

#include <algorithm>

#include "plan/steps.h"

namespace fccl::plan {

// Before a round a member has the slots of itself and of the distance - 1 members below it.
template <class Sink>
void bruck_exchange(Group group, Space space, Sink& sink) {
  for (int round = 0, distance = 1; distance < group.members; ++round, distance *= 2) {
    const int count = std::min(distance, group.members - distance);
    everyone(group, distance, sink, [&](int from) {
      const Slot slots{space, group.around(from - count + 1)};
      sink.transfer({round, from, group.around(from + distance), slots, slots, count});
    });
  }
}

// Also the barrier, of chunks without bytes: whoever has every chunk has heard of every member.
template <class Sink>
void bruck_all_gather(Group group, Sink& sink) {
  bruck_exchange(group, Space::data, sink);
}

// Of one chunk: everyone's partial travels as it is and all is added at the end, so that the sum keeps its one value.
template <class Sink>
void bruck_all_reduce(Group group, Sink& sink) {
  bruck_exchange(group, Space::parts, sink);
  for (int member = 0; member < group.members; ++member) sink.add({member, 0});
}

}  // namespace fccl::plan
