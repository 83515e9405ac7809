// Code folder: where the library or program lies that a piece of code is in.
#pragma once

#include <string>

namespace fccl {

// The absolute path of the folder of the file from which the code or constant at `address` was loaded, also where the loader
// was given a relative one and the current directory has changed since; empty if neither the loader nor the kernel knows.
std::string folder_of_code(const void* address);

}  // namespace fccl
