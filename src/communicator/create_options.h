// How a communicator is to be made.
#pragma once

#include <string>

#include "system/settings.h"

namespace fccl {

// A value of whoever creates; the communicator keeps a copy, from which its parts start.
struct CreateOptions {
  Settings settings;
  std::string name;
};

}  // namespace fccl
