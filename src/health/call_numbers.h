// The numbers of a communicator's calls.
#pragma once

#include <cstdint>

namespace fccl::core {

// Number of a communicator's first call. It lies near the wrap of the lower half, and of a lane's sequence, so that every run
// passes the wrap.
inline constexpr uint64_t kFirstNumber = 0xfffffff0;
// Init may make some calls before it; their messages carry the number of the first call.
inline constexpr uint64_t kEarliestNumber = kFirstNumber - 16;

}  // namespace fccl::core
