// Lets a test open as many descriptors as it needs.
#pragma once

#include <sys/resource.h>

namespace fccl::core::testing {

// Raises this process's limit as far as it may. Returns false if it may not have enough descriptors for so many parties on
// threads, ranks that join or leaders, each of which has at most four.
inline bool has_descriptors(int parties) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > static_cast<rlim_t>(parties) * 9 / 2;
}

}  // namespace fccl::core::testing
