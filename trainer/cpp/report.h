// The reports of a run: lines of progress, losses.csv, loss.svg and the summary in its last line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "arguments.h"

namespace trainer {

// The figures of one step, over all ranks.
struct Metrics {
  int64_t step = 0;
  double loss = 0, learning_rate = 0, gradient_norm = 0, seconds = 0;
};

// The files and lines of one run; rank 0 has one, its main thread uses it.
class Report {
 public:
  Report(const std::filesystem::path& folder, const Settings& settings);
  void step(const Metrics& metrics);
  void draw() const;

 private:
  std::filesystem::path folder_;
  int64_t steps_, tokens_per_step_, period_;
  std::ofstream csv_;
  std::vector<std::pair<int64_t, double>> losses_;
};

}  // namespace trainer
