// How messages name a member.
#include "bootstrap/member.h"

#include <fmt/format.h>

#include <algorithm>

namespace fccl::core {

std::string describe(const Member& member) {
  return fmt::format("rank {} (pid {} on {})", member.rank, member.pid, member.host_name);
}

std::string server_name(const std::vector<Member>& members, const std::string& root) {
  const auto server = std::ranges::find_if(members, &Member::serves);
  return server == members.end() ? fmt::format("the process that called fcclGetUniqueId, at {},", root)
                                 : fmt::format("{}, which serves the unique id,", describe(*server));
}

}  // namespace fccl::core
