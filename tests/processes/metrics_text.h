// Reads the text of the metrics as a program gets it.
#pragma once

#include <algorithm>
#include <string>

#include "processes/trial.h"

namespace fccl::core::testing {

inline std::string text_of_metrics(bool host) {
  size_t length = 0;
  EXPECT_TRUE(succeeded(fcclGetMetricsText(host ? 1 : 0, nullptr, 0, &length)));
  std::string text(length + 4096, '\0');
  EXPECT_TRUE(succeeded(fcclGetMetricsText(host ? 1 : 0, text.data(), text.size(), &length)));
  text.resize(std::min(length, text.size() - 1));
  return text;
}

// The sum of the samples of a family whose labels contain a text.
inline double sum_of(const std::string& text, const std::string& family, const std::string& label) {
  double sum = 0;
  for (size_t at = text.find("\n" + family + "{"); at != std::string::npos; at = text.find("\n" + family + "{", at + 1)) {
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    if (line.find(label) != std::string::npos) sum += std::stod(line.substr(line.find("} ") + 2));
  }
  return sum;
}

}  // namespace fccl::core::testing
