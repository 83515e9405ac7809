// Meets over the launcher library and, inside a process, over a barrier of its threads.
#include "launch/team.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>

namespace fccl::perf {
namespace {

// The processor's name as the kernel gives it; empty where it gives none.
std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

double combine_values(const std::vector<double>& values, Combine how) {
  switch (how) {
    case Combine::first:
      return values.front();
    case Combine::minimum:
      return *std::min_element(values.begin(), values.end());
    case Combine::maximum:
      return *std::max_element(values.begin(), values.end());
    default:
      return std::accumulate(values.begin(), values.end(), 0.0);
  }
}

}  // namespace

Team::Team(const Processes& processes, const Group& group, int threads)
    : processes_(processes),
      group_(group),
      threads_(threads),
      meet_(threads),
      values_(static_cast<std::size_t>(threads)),
      series_(static_cast<std::size_t>(threads)) {}

void Team::barrier(int thread) {
  meet_.arrive_and_wait();
  if (thread == 0) processes_.barrier();
  meet_.arrive_and_wait();
}

double Team::combine(int thread, double value, Combine how) {
  values_[static_cast<std::size_t>(thread)] = value;
  meet_.arrive_and_wait();
  if (thread == 0) {
    combined_ = combine_values(processes_.all_gather(combine_values(values_, how)), how);
    if (how == Combine::mean) combined_ /= processes_.processes() * threads_;
  }
  meet_.arrive_and_wait();
  return combined_;
}

const std::vector<std::vector<double>>& Team::process_maxima(int thread, const std::vector<double>& values) {
  series_[static_cast<std::size_t>(thread)] = values;
  meet_.arrive_and_wait();
  if (thread == 0) {
    std::vector<double> own = series_.front();
    for (const auto& other : series_) {
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = std::max(own[i], other[i]);
    }
    const std::vector<double> all = processes_.all_gather(own);
    maxima_.clear();
    for (auto begin = all.begin(); begin != all.end(); begin += static_cast<std::ptrdiff_t>(own.size()))
      maxima_.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(own.size()));
  }
  meet_.arrive_and_wait();
  return maxima_;
}

Result<UniqueId> Team::share_id() const {
  UniqueId own{};
  if (group_.index == 0) {
    auto made = unique_id();
    if (!made) return made.error();
    own = *made;
  }
  return processes_.all_gather(own)[static_cast<std::size_t>(group_.leader)];
}

std::vector<RankInfo> Team::introduce() const {
  std::vector<RankInfo> own(static_cast<std::size_t>(threads_));
  for (int thread = 0; thread < threads_; ++thread) {
    RankInfo& info = own[static_cast<std::size_t>(thread)];
    info.rank = rank(thread);
    info.group = group_.color;
    info.process_id = getpid();
    gethostname(info.host, sizeof info.host - 1);
    std::snprintf(info.processor, sizeof info.processor, "%s", processor_name().c_str());
  }
  return processes_.all_gather(own);
}

std::size_t memory_per_rank(int ranks) {
  const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return pages / 2 / static_cast<std::size_t>(ranks) * page;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace fccl::perf
