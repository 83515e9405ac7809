// Numbers the tree as a heap: the children of host h are the hosts from h most_children + 1 on.
#include "host_link/leader_tree.h"

#include <algorithm>

namespace fccl::core {

LeaderTree LeaderTree::of(const std::vector<Member>& leaders) {
  const auto hosts = static_cast<int>(leaders.size());
  for (int host = 0; host < hosts; ++host)
    if (leads_others(host, hosts) && leaders[static_cast<size_t>(host)].address.empty()) return {hosts, std::max(1, hosts)};
  return {hosts, kMostChildren};
}

std::vector<int> LeaderTree::children_of(int host) const {
  std::vector<int> children;
  for (int child = host * most_children_ + 1; child <= (host + 1) * most_children_ && child < hosts_; ++child)
    children.push_back(child);
  return children;
}

std::vector<int> LeaderTree::subtree_of(int host) const {
  std::vector<int> hosts;
  for (int each = host; each < hosts_; ++each)
    if (is_in_subtree(each, host)) hosts.push_back(each);
  return hosts;
}

bool LeaderTree::is_in_subtree(int host, int of) const {
  while (host > of) host = parent_of(host);
  return host == of;
}

bool LeaderTree::leads_through(int via, int me, int host) const {
  if (!is_in_subtree(me, via)) return is_in_subtree(host, via);
  int branch = me;
  while (parent_of(branch) != via) branch = parent_of(branch);
  return !is_in_subtree(host, branch);
}

}  // namespace fccl::core
