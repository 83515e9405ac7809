// Exposition: the text format of Prometheus, as a test reads it.
#pragma once

#include <map>
#include <string>

namespace fccl::core::metrics {

// Samples by name and labels. The text must follow the rules of the exposition format 0.0.4: each family has HELP and TYPE,
// then its own samples only; no sample appears twice; buckets grow and end with the count.
struct Exposition {
  std::map<std::string, double> samples;
  std::string fault;
};

Exposition read(const std::string& text);

}  // namespace fccl::core::metrics
