// Samples: repeated measurements of one thing, and the row that they make.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "row.h"

namespace fccl::gpu {

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  double median() const { return at(0.5); }

  // The median, with the spread in the note.
  Row row(std::string what, std::string unit, const std::string& note = {}) const {
    char spread[96];
    std::snprintf(spread, sizeof(spread), "median of %zu, 10 %% to 90 %%: %.4g to %.4g", values_.size(), at(0.1), at(0.9));
    return measured(std::move(what), median(), std::move(unit), (note.empty() ? "" : note + "; ") + spread);
  }

 private:
  double at(double fraction) const {
    if (values_.empty()) return 0;
    auto sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::min(sorted.size() - 1, static_cast<size_t>(fraction * static_cast<double>(sorted.size())))];
  }

  std::vector<double> values_;
};

}  // namespace fccl::gpu
