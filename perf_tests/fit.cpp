// Searches over the logarithms of the costs, by patterns.
#include "fit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "statistics.h"

namespace fccl::perf {
namespace {

constexpr std::array kFields{&Costs::latency, &Costs::message, &Costs::wire_byte, &Costs::added_byte, &Costs::host_byte};
constexpr std::size_t kCount = kFields.size();
using Logarithms = std::array<double, kCount>;

// Bounds of the search: no machine is slower or faster.
constexpr Costs kLeast{1e-8, 1e-9, 1 / 1e14, 1 / 1e14, 1 / 1e14};
constexpr Costs kMost{1, 1e-1, 1 / 1e4, 1 / 1e6, 1 / 1e6};

// Costs between two hosts by TCP. They attract the search a little, so that a cost which a slower one hides is not invented.
constexpr Costs kCommon{3e-5, 2e-6, 1 / 1.25e9, 1 / 8e9, 1 / 5e9};
constexpr double kPull = 0.002;

// Smaller differences of logarithms count as equal: this leaves the search no sharp ridges.
constexpr double kNear = 0.02;

Logarithms logarithms_of(const Costs& costs) {
  Logarithms logarithms{};
  for (std::size_t i = 0; i < kCount; ++i) logarithms[i] = std::log(costs.*kFields[i]);
  return logarithms;
}

Costs costs_of(const Logarithms& logarithms) {
  Costs costs{};
  for (std::size_t i = 0; i < kCount; ++i)
    costs.*kFields[i] = std::clamp(std::exp(logarithms[i]), kLeast.*kFields[i], kMost.*kFields[i]);
  return costs;
}

// std::hypot would bind the program to glibc 2.35.
double root_of_squares(double one, double other) { return std::sqrt(one * one + other * other); }

double misfit(const std::vector<Point>& points, const Logarithms& logarithms) {
  static const Logarithms common = logarithms_of(kCommon);
  const Costs costs = costs_of(logarithms);
  double sum = 0;
  for (std::size_t i = 0; i < kCount; ++i) sum += kPull * std::pow(logarithms[i] - common[i], 2);
  for (const Point& point : points) sum += root_of_squares(std::log(predict(point.load, costs) / point.seconds), kNear);
  return sum;
}

// Changes one cost up or down, or two at once: one may have to give back what the other adds.
std::vector<Logarithms> directions() {
  std::vector<Logarithms> all;
  for (std::size_t i = 0; i < kCount; ++i)
    for (std::size_t j = i; j < kCount; ++j)
      for (const double first : {1., -1.})
        for (const double second : {1., -1.}) {
          Logarithms direction{};
          direction[j] = second;
          direction[i] = first;
          all.push_back(direction);
        }
  return all;
}

// Returns how many hosts a rank tells of a call under the costs that force the plans: by dissemination where it can save
// messages.
int entries_among(int hosts) {
  constexpr int kMostToEach = 3;
  return hosts <= kMostToEach ? hosts - 1 : static_cast<int>(std::bit_width(static_cast<unsigned>(hosts - 1)));
}

struct Found {
  Logarithms place;
  double misfit;
};

Found search(const std::vector<Point>& points, const Logarithms& start) {
  constexpr double kFirstStep = 1, kLastStep = 1e-4;
  constexpr int kMostSweeps = 2000;
  Found best{start, misfit(points, start)};
  const auto all = directions();
  int sweeps = 0;
  for (double step = kFirstStep; step > kLastStep && sweeps < kMostSweeps; ++sweeps) {
    const double before = best.misfit;
    for (const Logarithms& direction : all) {
      Logarithms place = best.place;
      for (std::size_t i = 0; i < kCount; ++i) place[i] += step * direction[i];
      if (const double there = misfit(points, place); there < best.misfit) best = {place, there};
    }
    if (best.misfit > before * 0.9999) step /= 2;
  }
  return best;
}

}  // namespace

Load all_gather_load(const Hosts& hosts, double block_bytes, int slices) {
  const int others = hosts.hosts - 1;
  const double chunk = block_bytes * hosts.carried_blocks() * hosts.columns;
  return {entries_among(hosts.hosts), 1, others, others, slices, chunk / hosts.rails, block_bytes * hosts.ranks, 0};
}

Load reduce_scatter_load(const Hosts& hosts, double block_bytes, int slices) {
  Load load = all_gather_load(hosts, block_bytes, slices);
  load.added_bytes = block_bytes * hosts.carried_blocks() * hosts.hosts;
  return load;
}

Load broadcast_load(const Hosts& hosts, double bytes, int slices) {
  const int others = hosts.hosts - 1;
  return {entries_among(hosts.hosts), others, others, 1, slices, bytes / hosts.rails, bytes, 0};
}

double predict(const Load& load, const Costs& costs) {
  const double chunk = load.chunk_bytes / load.slices * costs.wire_byte;
  const double copied = load.copied_bytes / load.slices * costs.host_byte;
  const double added = load.added_bytes / load.slices * costs.added_byte;
  const double sent =
      load.rounds * (costs.message + chunk) + (load.messages - load.rounds) * root_of_squares(costs.message, chunk);
  const double share = static_cast<double>(load.rounds) / load.messages;
  const double first = load.entries * costs.message + load.rounds * costs.latency + sent + added + share * copied +
                       (1 - share) * std::max(0.0, copied - sent);
  const double pace = std::hypot(load.messages_per_port * costs.message, load.messages_per_port * chunk, copied + added);
  return first + (load.slices - 1) * pace;
}

Costs fit(const std::vector<Point>& points) {
  // Either the wire or the host may be the slower one: each case is a minimum that a search from the other one may miss.
  constexpr double kFactors[] = {0.1, 1, 10};
  Found best{logarithms_of(kCommon), misfit(points, logarithms_of(kCommon))};
  for (const double wire : kFactors)
    for (const double host : kFactors) {
      Costs start = kCommon;
      start.wire_byte *= wire;
      start.host_byte *= host;
      if (const Found found = search(points, logarithms_of(start)); found.misfit < best.misfit) best = found;
    }
  return costs_of(best.place);
}

double error_percent(const Point& point, const Costs& costs) { return (predict(point.load, costs) / point.seconds - 1) * 100; }

double median_error_percent(const std::vector<Point>& points, const Costs& costs) {
  std::vector<double> errors;
  errors.reserve(points.size());
  for (const Point& point : points) errors.push_back(std::abs(error_percent(point, costs)));
  return statistics_of(errors).p50;
}

std::string text_of(const Costs& costs, double error_percent) {
  char text[192];
  std::snprintf(text, sizeof text, "latency=%.6gus,message=%.6gus,wire=%.6gGbit/s,add=%.6gGB/s,host=%.6gGB/s,error=%.1f%%",
                costs.latency * 1e6, costs.message * 1e6, 1 / (costs.wire_byte * 1.25e8), 1 / (costs.added_byte * 1e9),
                1 / (costs.host_byte * 1e9), error_percent);
  return text;
}

}  // namespace fccl::perf
