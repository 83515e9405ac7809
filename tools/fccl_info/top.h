// top: what the ranks of a running job are at.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace fccl {

// `words`: the id of a process of the job.
Result<std::string> top(std::span<const std::string> words);

}  // namespace fccl
