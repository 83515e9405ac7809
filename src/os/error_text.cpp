// Adds advice to the system's text if descriptors are short.
#include "os/error_text.h"

#include <cerrno>
#include <system_error>

namespace fccl::core {

bool is_short_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

std::string error_text(int error) {
  const std::string text = std::generic_category().message(error);
  return is_short_of_descriptors(error) ? text + "; raise the limit of open files (ulimit -n)" : text;
}

}  // namespace fccl::core
