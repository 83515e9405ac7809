// check: ends the process if an invariant is broken, and prints the place and the broken belief.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace fccl::core {

inline void check(bool holds, const char* belief, std::source_location where = std::source_location::current()) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "fccl: %s:%u: broken invariant: %s\n", where.file_name(), where.line(), belief);
  std::abort();
}

}  // namespace fccl::core
