// Turns an errno into text for a message.
#pragma once

#include <string>

#include "base/result.h"

namespace fccl::core {

// True if the errno says that this process or this host has too many files open.
bool is_short_of_descriptors(int error);

// Returns the code of an error of the system that an errno tells.
MessageCode system_error(int error);

// Returns a text such as "Connection refused". If descriptors are short, it also says what to do.
std::string error_text(int error);

}  // namespace fccl::core
