// Code folder: the folder of the library or program that contains a piece of code.
#pragma once

#include <string>

namespace fccl::core {

// Returns the absolute path of the folder of the file that the code or constant at `address` was loaded from, even if the
// loader was given a relative path and the current directory has changed since. Returns an empty text if neither the loader nor
// the kernel knows.
std::string folder_of_code(const void* address);

}  // namespace fccl::core
