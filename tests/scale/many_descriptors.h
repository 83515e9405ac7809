// Lets a test open as many descriptors as it needs.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace fccl::core::testing {

// Raises this process's limit as far as it may. Returns false if it may not have so many descriptors.
inline bool can_open(size_t descriptors) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > descriptors;
}

}  // namespace fccl::core::testing
