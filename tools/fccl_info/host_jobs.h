// The jobs of this host, as the pages of their processes show them.
#pragma once

#include <vector>

#include "metrics/page_copy.h"

namespace fccl::core {

// The pages of processes that share communicators, directly or through each other, in the order of process ids.
using Job = std::vector<metrics::PageCopy>;

// Returns the jobs of all processes that this user may look at, in the order of their first process. A process that ends
// meanwhile is left out.
std::vector<Job> jobs_of_host();

}  // namespace fccl::core
