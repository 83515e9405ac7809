// Pairwise: every member sends directly to every other; each byte crosses the wire once.
#pragma once

#include "plan/steps.h"

namespace fccl::core::plan {

// Every member sends its own slot of this space to all others, in one round.
template <class Sink>
void pairwise_exchange(Group group, int round, Space space, Sink& sink) {
  for (int distance = 1; distance < group.members; ++distance)
    everyone(group, distance, sink,
             [&](int from) { sink.transfer({round, from, group.around(from + distance), {space, from}, {space, from}}); });
}

template <class Sink>
void pairwise_all_gather(Group group, Sink& sink) {
  pairwise_exchange(group, 0, Space::data, sink);
}

// Member c adds chunk c.
template <class Sink>
void pairwise_reduce_scatter(Group group, Sink& sink) {
  for (int distance = 1; distance < group.members; ++distance)
    everyone(group, distance, sink, [&](int from) {
      const int to = group.around(from + distance);
      sink.transfer({0, from, to, {Space::data, to}, {Space::parts, from}});
    });
  for (int member = 0; member < group.members; ++member) sink.add({member, member});
}

template <class Sink>
void pairwise_all_to_all(Group group, Sink& sink) {
  for (int distance = 1; distance < group.members; ++distance)
    everyone(group, distance, sink, [&](int from) {
      const int to = group.around(from + distance);
      sink.transfer({0, from, to, {Space::given, to}, {Space::data, from}});
    });
}

template <class Sink>
void pairwise_all_reduce(Group group, Sink& sink) {
  pairwise_reduce_scatter(group, sink);
  pairwise_exchange(group, 1, Space::data, sink);
}

// Works on one chunk: every member gets the partials of all, and adds them.
template <class Sink>
void direct_all_reduce(Group group, Sink& sink) {
  pairwise_exchange(group, 0, Space::parts, sink);
  for (int member = 0; member < group.members; ++member) sink.add({member, 0});
}

}  // namespace fccl::core::plan
