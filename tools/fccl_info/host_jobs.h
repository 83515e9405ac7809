// The jobs of this host, as the pages of their processes show them.
#pragma once

#include <string>
#include <vector>

#include "metrics/page_copy.h"

namespace fccl::core {

// The pages of processes that share communicators, directly or through each other, in the order of process ids.
using Job = std::vector<metrics::PageCopy>;

struct HostJobs {
  std::vector<Job> jobs;                // in the order of their first process
  std::vector<std::string> unreadable;  // a sentence for each process of another version of FCCL
};

// Looks at all processes of this host but this one. It leaves out those of other users, and those that end meanwhile.
HostJobs jobs_of_host();

}  // namespace fccl::core
