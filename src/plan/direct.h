// Direct: the root exchanges data with every member itself. Used for gather, scatter, reduce, and a broadcast made of a scatter
// and an AllGather.
#pragma once

#include "plan/pairwise.h"
#include "plan/steps.h"

namespace fccl::core::plan {

// Every member q sends its slot q to the root.
template <class Sink>
void gather_slots(Group group, int round, Space space, Sink& sink) {
  for (int distance = 1; distance < group.members; ++distance) {
    const int from = group.around(group.root + distance);
    sink.transfer({round, from, group.root, {space, from}, {space, from}});
  }
}

template <class Sink>
void direct_gather(Group group, Sink& sink) {
  gather_slots(group, 0, Space::data, sink);
}

template <class Sink>
void direct_scatter(Group group, Sink& sink) {
  for (int distance = 1; distance < group.members; ++distance) {
    const int to = group.around(group.root + distance);
    sink.transfer({0, group.root, to, {Space::data, to}, {Space::data, to}});
  }
}

// Works on one chunk: the root adds every member's.
template <class Sink>
void direct_reduce(Group group, Sink& sink) {
  gather_slots(group, 0, Space::parts, sink);
  sink.add({group.root, 0});
}

template <class Sink>
void scattered_reduce(Group group, Sink& sink) {
  pairwise_reduce_scatter(group, sink);
  gather_slots(group, 1, Space::data, sink);
}

// No member sends a chunk to the root, which has them all.
template <class Sink>
void scattered_broadcast(Group group, Sink& sink) {
  direct_scatter(group, sink);
  for (int distance = 1; distance < group.members; ++distance)
    everyone(group, distance, sink, [&](int from) {
      const int to = group.around(from + distance);
      if (to != group.root) sink.transfer({1, from, to, {Space::data, from}, {Space::data, from}});
    });
}

}  // namespace fccl::core::plan
