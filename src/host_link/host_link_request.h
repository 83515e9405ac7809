// HostLinkRequest: whom a link between hosts connects.
#pragma once

#include <vector>

#include "bootstrap/member.h"
#include "channels/unique_id.h"

namespace fccl::core {

// The leaders, and the number of this one.
struct HostLinkRequest {
  UniqueId id;
  int rank = 0;                 // this leader's
  std::vector<Member> leaders;  // by host; the first one is the hub, and listens at its address
  std::vector<int> host_of;     // by rank

  static constexpr int kHub = 0;
  int host() const { return host_of[rank]; }
  int hosts() const { return static_cast<int>(leaders.size()); }
  bool is_hub() const { return host() == kHub; }
};

}  // namespace fccl::core
