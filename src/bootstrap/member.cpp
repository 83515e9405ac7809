// How messages name a member.
#include "bootstrap/member.h"

#include <fmt/format.h>

namespace fccl::core {

std::string describe(const Member& member) {
  return fmt::format("rank {} (pid {} on {})", member.rank, member.pid, member.host_name);
}

}  // namespace fccl::core
