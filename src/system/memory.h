// How much memory this process may still take.
#pragma once

#include <cstddef>
#include <string>

namespace fccl {

// Bytes that the host and the limits of this process's control groups (version 2, or the memory controller of version 1) leave,
// as their files below `root` say; what a file does not say limits nothing. Memory that only caches files counts as free.
size_t available_memory(const std::string& root = "/");

}  // namespace fccl
