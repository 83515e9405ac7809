// HappensBefore: a graph of events, and whether one of them surely happens before another.
#pragma once

#include <vector>

namespace fccl::plan {

class HappensBefore {
 public:
  explicit HappensBefore(int events) : causes_(events), place_(events, 0), seen_(events, 0) {}

  void order(int cause, int effect) { causes_[effect].push_back(cause); }

  // All events, causes first; shorter than the number of events if there is a circle. To be called once, before `reaches`.
  const std::vector<int>& sort();
  // Whether there is a way from one event to another; an event does not reach itself.
  bool reaches(int from, int to);

 private:
  std::vector<std::vector<int>> causes_;
  std::vector<int> place_;  // in the sorted order
  std::vector<int> sorted_;
  std::vector<int> seen_;  // the number of the last search that came by
  std::vector<int> queue_;
  int searches_ = 0;
};

}  // namespace fccl::plan
