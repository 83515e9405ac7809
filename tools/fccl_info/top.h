// top: shows what the ranks of a running job are doing.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace fccl::core {

// `words`: the process id of one process of the job.
Result<std::string> top(std::span<const std::string> words);

}  // namespace fccl::core
