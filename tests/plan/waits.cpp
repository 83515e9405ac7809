// Sorting a graph of waits: an event comes when the last that it waits for has come.
#include "plan/waits.h"

#include <cstddef>

namespace fccl::core::plan {

std::vector<int> Waits::sort() const {
  std::vector<int> first(static_cast<size_t>(events_) + 1), missing(static_cast<size_t>(events_)), effects(edges_.size());
  for (const Edge& edge : edges_) {
    ++first[edge.cause + 1];
    ++missing[edge.event];
  }
  for (int event = 0; event < events_; ++event) first[event + 1] += first[event];
  std::vector<int> place(first.begin(), first.end() - 1);
  for (const Edge& edge : edges_) effects[place[edge.cause]++] = edge.event;
  std::vector<int> sorted;
  sorted.reserve(static_cast<size_t>(events_));
  for (int event = 0; event < events_; ++event)
    if (missing[event] == 0) sorted.push_back(event);
  for (size_t next = 0; next < sorted.size(); ++next)
    for (int i = first[sorted[next]]; i < first[sorted[next] + 1]; ++i)
      if (--missing[effects[i]] == 0) sorted.push_back(effects[i]);
  return sorted;
}

}  // namespace fccl::core::plan
