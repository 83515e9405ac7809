// The versions in a report: of FCCL, of what it runs on, and of torch.
#pragma once

#include <string>

namespace fccl::core {

std::string versions();

}  // namespace fccl::core
