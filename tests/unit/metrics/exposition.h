// Exposition: the text format of Prometheus as a test reads it.
#pragma once

#include <map>
#include <string>

namespace fccl::metrics {

// Samples by name and labels, of a text that follows the rules of the exposition format 0.0.4: each family has its HELP and
// TYPE and then its samples and no others, no sample is there twice, buckets grow and end with the count.
struct Exposition {
  std::map<std::string, double> samples;
  std::string fault;
};

Exposition read(const std::string& text);

}  // namespace fccl::metrics
