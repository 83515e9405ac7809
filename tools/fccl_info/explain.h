// explain: how a collective would go between hosts, how long that should take, and by what.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace fccl {

// `words` follow "fccl-info explain". Error: fcclInvalidArgument where a word is wrong, else what is wrong with what a
// word names: a file, a setting.
Result<std::string> explain(std::span<const std::string> words);

}  // namespace fccl
