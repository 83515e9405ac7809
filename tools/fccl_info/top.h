// top: what the ranks of this host have done, how fast, and for whom they wait.
#pragma once

#include <string>

#include "fccl_info/command.h"

namespace fccl::core {

// `words` follow "fccl-info top": the process of a job, or nothing for all jobs; --interval SECONDS; --once. On a terminal it
// writes a new look each interval, until the process ends or the user interrupts it. Otherwise it answers once.
Result<std::string> top(Words words, Form form);

}  // namespace fccl::core
