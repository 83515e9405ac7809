// Draws delays and takes medians.
#include "skew.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hash.h"
#include "statistics.h"

namespace fccl::perf {
namespace {

// Keeps these numbers apart from those of the test data.
constexpr std::uint64_t kDelays = 0x64656c6179;

}  // namespace

double drawn_delay(int rank, int iteration, double most) {
  return std::ldexp(static_cast<double>(hash_of(kDelays, rank, static_cast<std::size_t>(iteration)) >> 11), -53) * most;
}

std::vector<double> calls_as_last(const Arrivals& own, const std::vector<double>& latest) {
  std::vector<double> calls(own.calls.size(), 0.0);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (own.delays[i] == latest[i]) calls[i] = own.calls[i];
  }
  return calls;
}

Skew skew_of(const std::vector<double>& earliest, const std::vector<double>& latest, const std::vector<double>& last_calls) {
  std::vector<double> apart;
  apart.reserve(latest.size());
  for (std::size_t i = 0; i < latest.size(); ++i) apart.push_back(latest[i] - earliest[i]);
  return {.apart = statistics_of(apart).p50, .last = statistics_of(last_calls).p50};
}

}  // namespace fccl::perf
