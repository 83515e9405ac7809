// Compares the prices of all algorithms, and prints them as a table.
#include "plan/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/signature.h"
#include "plan/catalog.h"

namespace fccl::core::plan {
namespace {

// The most times that the number of slices is doubled. More slices gain nothing: less than two percent of the time is left
// without overlap.
constexpr int kMostDoublings = 6;

const Algorithm<Price>& algorithm_at(int place) { return kCatalog<Price>[static_cast<size_t>(place)]; }

std::string bytes_in_words(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string counted(int count, const char* thing) { return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s"); }

// Returns "3 hosts x 2 ranks" or, if hosts differ, "3 hosts of at most 4 ranks, 9 in all, in 2 columns".
std::string in_words(const Shape& shape) {
  const std::string hosts = counted(shape.hosts, "host");
  if (shape.most_ranks == shape.columns) return fmt::format("{} x {}", hosts, counted(shape.columns, "rank"));
  return fmt::format("{} of at most {} ranks, {} in all, in {}", hosts, shape.most_ranks, shape.ranks,
                     counted(shape.columns, "column"));
}

std::string line_of(const Way& way, bool is_taken) {
  const Time& t = way.time;
  return fmt::format("{:>3} {:<10} {:>6} {:>6} {:>13.1f} {:>12.1f} {:>12.1f} {:>12.1f} {:>12.1f}\n", is_taken ? "->" : "",
                     way.name, way.rounds, way.slices, t.total() * 1e6, t.latency * 1e6, t.message * 1e6, t.wire * 1e6,
                     t.host * 1e6);
}

}  // namespace

bool has_algorithm(fcclColl_t collective) {
  return std::ranges::any_of(kCatalog<Price>,
                             [collective](const auto& algorithm) { return algorithm.collective == collective; });
}

Choice Chooser::best_slices(int algorithm, const Request& request) const {
  Choice best{};
  for (int doublings = 0; doublings <= kMostDoublings; ++doublings) {
    const int slices = 1 << doublings;
    const Time time = predict(request, algorithm_at(algorithm).cut, costs_[algorithm], shape_, slices);
    if (doublings == 0 || time.total() < best.time.total()) best = {algorithm, slices, time};
  }
  best.time.message += seconds_of_entries(request.collective, shape_);
  return best;
}

Choice Chooser::choose(const Request& request) const {
  Choice best{-1, 0, {}};
  for (int i = 0; i < static_cast<int>(costs_.size()); ++i) {
    if (algorithm_at(i).collective != request.collective) continue;
    const Choice choice = best_slices(i, request);
    if (best.algorithm < 0 || choice.time.total() < best.time.total()) best = choice;
  }
  check(best.algorithm >= 0, "every collective has a wire algorithm");
  return best;
}

Way Chooser::by_plan(const Choice& choice) const {
  return {choice.algorithm, algorithm_at(choice.algorithm).name, costs_[choice.algorithm].rounds, choice.slices, choice.time};
}

Way Chooser::way_of(const Request& request) const {
  if (const auto with_entries = predict_with_entries(request, shape_))
    return {-1, "entries", with_entries->rounds, 1, with_entries->time};
  return by_plan(choose(request));
}

std::string Chooser::explain(const Request& request) const {
  const Way taken = way_of(request);
  const double minimum = wire_minimum(request, shape_);
  std::string text = fmt::format(
      "{} of {} on {}, {} per host\n"
      "at least {} through a host's interfaces in one direction, which take {:.1f} us\n\n"
      "    {:<10} {:>6} {:>6} {:>13} {:>12} {:>12} {:>12} {:>12}\n",
      name_of(request.collective), bytes_in_words(request.bytes), in_words(shape_), counted(shape_.rails, "rail"),
      bytes_in_words(minimum), minimum / shape_.rails * shape_.constants.wire_byte * 1e6, "algorithm", "rounds", "slices",
      "predicted us", "latency", "messages", "wire", "host");
  if (taken.algorithm < 0) text += line_of(taken, true);
  for (int i = 0; i < static_cast<int>(costs_.size()); ++i) {
    if (algorithm_at(i).collective != request.collective) continue;
    text += line_of(by_plan(best_slices(i, request)), i == taken.algorithm);
  }
  return text;
}

}  // namespace fccl::core::plan
