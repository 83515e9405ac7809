// Asks every process of /proc for its page.
#include "fccl_info/host_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

namespace fccl::core {
namespace {

std::set<int> other_processes() {
  std::set<int> processes;
  const int own = ::getpid();
  std::error_code fault;
  for (std::filesystem::directory_iterator entry("/proc", fault), last; !fault && entry != last; entry.increment(fault)) {
    const std::string name = entry->path().filename();
    int process = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (wrong == std::errc() && end == name.data() + name.size() && process != own) processes.insert(process);
  }
  return processes;
}

}  // namespace

HostJobs jobs_of_host() {
  HostJobs found;
  std::set<int> seen;
  for (const int process : other_processes()) {
    if (seen.contains(process)) continue;
    Result<Job> job = metrics::pages_from(process);
    if (!job) {
      if (metrics::PageCopy::is_of_other_version(job.error())) found.unreadable.push_back(job.error().message);
      continue;
    }
    for (const metrics::PageCopy& page : *job) seen.insert(static_cast<int>(page->process));
    found.jobs.push_back(std::move(*job));
  }
  return found;
}

}  // namespace fccl::core
