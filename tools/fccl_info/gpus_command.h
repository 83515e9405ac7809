// The command gpus: the GPUs that this process may use, or why there are none.
#pragma once

#include <string>

#include "fccl_info/command.h"

namespace fccl::core {

// `words`: nothing, or --hold, which keeps the GPUs open until the input ends.
Result<std::string> list_gpus(Words words, Form form);

}  // namespace fccl::core
