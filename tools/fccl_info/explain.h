// explain: how a collective would go between hosts or within one, and why.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace fccl::core {

// `words` follow "fccl-info explain". Error: fcclInvalidArgument for a wrong word, otherwise the error of the thing that a word
// names: a file, a setting.
Result<std::string> explain(std::span<const std::string> words);

}  // namespace fccl::core
