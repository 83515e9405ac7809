// The limits of this process and host that FCCL may meet.
#pragma once

#include <string>

namespace fccl::core {

std::string limits_here();

}  // namespace fccl::core
