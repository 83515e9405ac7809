// Meets over the launcher library and, inside a process, over a barrier of its threads.
#include "launch/team.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace fccl::perf {

std::string DeviceInfo::place() const {
  if (bytes == 0) return "cpu";
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x", domain, bus, slot);
  return text;
}

namespace {

// Returns the processor's name, as the kernel gives it; empty if it gives none.
std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

// Combines the values in one place of all series; a mean stays a sum here, and is divided later.
double combine_place(const std::vector<std::vector<double>>& series, std::size_t place, Combine how) {
  double result = series.front()[place];
  for (auto each = series.begin() + 1; each != series.end(); ++each) {
    const double value = (*each)[place];
    if (how == Combine::minimum) {
      result = std::min(result, value);
    } else if (how == Combine::maximum) {
      result = std::max(result, value);
    } else if (how != Combine::first) {
      result += value;
    }
  }
  return result;
}

}  // namespace

Team::Team(const Processes& processes, const Group& group, int threads)
    : processes_(processes), group_(group), threads_(threads), meet_(threads), series_(static_cast<std::size_t>(threads)) {}

void Team::barrier(int thread) {
  meet_.arrive_and_wait();
  if (thread == 0) processes_.barrier();
  meet_.arrive_and_wait();
}

std::vector<std::vector<double>> Team::gather(int thread, const std::vector<double>& values, const std::vector<Combine>& how) {
  series_[static_cast<std::size_t>(thread)] = values;
  meet_.arrive_and_wait();
  if (thread != 0) return {};
  std::vector<double> own;
  own.reserve(values.size());
  for (std::size_t place = 0; place < values.size(); ++place) own.push_back(combine_place(series_, place, how[place]));
  const std::vector<double> all = processes_.all_gather(own);
  std::vector<std::vector<double>> found;
  for (auto begin = all.begin(); begin != all.end(); begin += static_cast<std::ptrdiff_t>(own.size()))
    found.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(own.size()));
  return found;
}

std::vector<double> Team::combine(int thread, const std::vector<Part>& parts) {
  std::vector<double> values;
  std::vector<Combine> how;
  for (const Part& part : parts) {
    values.push_back(part.value);
    how.push_back(part.how);
  }
  const auto found = gather(thread, values, how);
  if (thread == 0) {
    combined_.clear();
    for (std::size_t place = 0; place < parts.size(); ++place) {
      combined_.push_back(combine_place(found, place, how[place]));
      if (how[place] == Combine::mean) combined_.back() /= processes_.processes() * threads_;
    }
  }
  meet_.arrive_and_wait();
  return combined_;
}

const std::vector<std::vector<double>>& Team::process_maxima(int thread, const std::vector<double>& values) {
  auto found = gather(thread, values, std::vector<Combine>(values.size(), Combine::maximum));
  if (thread == 0) maxima_ = std::move(found);
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

std::vector<RankInfo> Team::introduce(const std::vector<DeviceInfo>& devices) const {
  std::vector<RankInfo> own(static_cast<std::size_t>(threads_));
  for (int thread = 0; thread < threads_; ++thread) {
    RankInfo& info = own[static_cast<std::size_t>(thread)];
    info.rank = rank(thread);
    info.group = group_.color;
    info.process_id = getpid();
    gethostname(info.host, sizeof info.host - 1);
    info.device = devices[static_cast<std::size_t>(thread)];
  }
  return processes_.all_gather(own);
}

DeviceInfo this_processor() {
  DeviceInfo found;
  std::snprintf(found.name, sizeof found.name, "%s", processor_name().c_str());
  return found;
}

int ranks_per_gpu(const std::vector<RankInfo>& ranks) {
  std::map<std::tuple<std::string, unsigned, unsigned, unsigned>, int> counts;
  int most = 0;
  for (const RankInfo& rank : ranks) {
    const DeviceInfo& device = rank.device;
    if (device.bytes > 0) most = std::max(most, ++counts[{rank.host, device.domain, device.bus, device.slot}]);
  }
  return most;
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
