// Adds advice to the system's text if descriptors are short.
#include "os/error_text.h"

#include <cerrno>
#include <system_error>

namespace fccl::core {

bool is_short_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

MessageCode system_error(int error) {
  if (is_short_of_descriptors(error)) return MessageKind::too_many_files;
  return fcclSystemError;
}

std::string error_text(int error) {
  const std::string text = std::generic_category().message(error);
  return is_short_of_descriptors(error) ? text + "; raise the limit of open files (ulimit -n)" : text;
}

}  // namespace fccl::core
