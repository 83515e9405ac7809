// explain: how a collective would go between hosts or within one, and why.
#pragma once

#include <string>

#include "fccl_info/command.h"

namespace fccl::core {

// `words` follow "fccl-info explain". Error: fcclInvalidArgument for a wrong word, otherwise the error of the thing that a word
// names: a file, a setting. Only the answer about hosts has a form in JSON.
Result<std::string> explain(Words words, Form form);

}  // namespace fccl::core
