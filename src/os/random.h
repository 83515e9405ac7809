// Random: bits that no other process can guess.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace fccl::core {

// Returns bits from the kernel; any thread may call. Error: the kernel has none.
Result<uint64_t> random_bits();

}  // namespace fccl::core
