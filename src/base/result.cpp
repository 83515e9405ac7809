// Puts codes behind messages.
#include "base/result.h"

#include <fmt/format.h>

namespace fccl::core {

std::string with_code(std::string_view message, MessageCode code) {
  return fmt::format("{} [FCCL-{:04}]", message, code.number());
}

}  // namespace fccl::core
