// HostLinkRequest: whom a link between hosts connects.
#pragma once

#include <vector>

#include "bootstrap/member.h"
#include "channels/unique_id.h"
#include "host_link/leader_tree.h"

namespace fccl::core {

// The leaders, and the number of this one.
struct HostLinkRequest {
  UniqueId id;
  int rank = 0;                 // this leader's
  std::vector<Member> leaders;  // by host; those that have children in the tree listen at their addresses
  std::vector<int> host_of;     // by rank
  LeaderTree tree = LeaderTree::of(leaders);

  int host() const { return host_of[rank]; }
  int hosts() const { return static_cast<int>(leaders.size()); }
  bool is_top() const { return host() == LeaderTree::kTop; }
  // Returns the parent of this leader, which is not the top.
  int parent() const { return tree.parent_of(host()); }
};

}  // namespace fccl::core
