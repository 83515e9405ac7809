// What an errno means, in words for a message.
#pragma once

#include <string>

namespace fccl {

// Whether this process or this host has as many files open as it may.
bool is_short_of_descriptors(int error);

// "Connection refused"; for want of descriptors also what to do.
std::string error_text(int error);

}  // namespace fccl
