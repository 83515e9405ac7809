// The command settings: the variables that FCCL reads, and their values here.
#pragma once

#include <string>

#include "fccl_info/command.h"

namespace fccl::core {

Result<std::string> list_settings(Words words, Form form);

}  // namespace fccl::core
