// Reports on processes: their variables, libraries and limits.
#pragma once

#include <string>

#include "fccl_info/look.h"

namespace fccl::core {

// Returns the variables of this process that FCCL or libraries below it read. Only settings of FCCL have their values in it,
// and of those not FCCL_HOST_ID; of any other variable it says that it is set.
std::string variables_here();

// Returns the same of the processes in a look, as they were started, with FCCL's libraries and the limits of each.
std::string processes_of(const Look& look);

}  // namespace fccl::core
