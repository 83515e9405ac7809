// Look: the jobs of this host at one moment, and its text.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "fccl_info/host_jobs.h"
#include "os/clock.h"

namespace fccl::core {

struct Look {
  Clock::time_point at;
  HostJobs host;
};

// Looks at the job of a process, or at all jobs of this host. Error: fcclSystemError, if that process shows no page.
Result<Look> look_at(std::optional<int> process);

// Lists jobs, communicators and ranks. With an earlier look each rank has the calls and bytes per second since then.
std::string text_of(const Look& now, const Look* before);

}  // namespace fccl::core
