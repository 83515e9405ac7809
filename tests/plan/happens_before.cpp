// The order of events: sorting it, and searching it backwards from an effect.
#include "plan/happens_before.h"

#include <cstddef>

namespace fccl::plan {

const std::vector<int>& HappensBefore::sort() {
  std::vector<std::vector<int>> effects(causes_.size());
  std::vector<size_t> missing(causes_.size());
  for (size_t event = 0; event < causes_.size(); ++event) {
    missing[event] = causes_[event].size();
    for (int cause : causes_[event]) effects[cause].push_back(static_cast<int>(event));
    if (missing[event] == 0) sorted_.push_back(static_cast<int>(event));
  }
  for (size_t next = 0; next < sorted_.size(); ++next) {
    place_[sorted_[next]] = static_cast<int>(next);
    for (int effect : effects[sorted_[next]])
      if (--missing[effect] == 0) sorted_.push_back(effect);
  }
  return sorted_;
}

bool HappensBefore::reaches(int from, int to) {
  ++searches_;
  queue_.assign(1, to);
  for (size_t next = 0; next < queue_.size(); ++next)
    for (int cause : causes_[queue_[next]]) {
      if (cause == from) return true;
      if (place_[cause] < place_[from] || seen_[cause] == searches_) continue;
      seen_[cause] = searches_;
      queue_.push_back(cause);
    }
  return false;
}

}  // namespace fccl::plan
