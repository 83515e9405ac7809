// Random: bits that nobody can guess.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace fccl {

// From the kernel; any thread may call. Error: the kernel has none.
Result<uint64_t> random_bits();

}  // namespace fccl
