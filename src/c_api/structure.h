// Copies structures of the C interface that may grow.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "c_api/report.h"

namespace fccl::core {

// Writes as much of a structure as the calling program knows, which it says in `size`.
template <class Structure>
fcclResult_t give(const char* function, Structure known, Structure* asked) {
  const size_t size = asked->size;
  if (size < sizeof(size_t))
    return refuse(function, fmt::format("size is {}: set it to the size of the structure before the call", size));
  known.size = std::min(size, sizeof known);
  std::memcpy(asked, &known, known.size);
  return fcclSuccess;
}

}  // namespace fccl::core
