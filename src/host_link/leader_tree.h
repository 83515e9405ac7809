// LeaderTree: which leaders of hosts a link connects, as a tree with the first host's leader at the top.
#pragma once

#include <vector>

#include "bootstrap/member.h"

namespace fccl::core {

// A value; hosts are numbers from 0 on, and each one's parent has a lower number.
class LeaderTree {
 public:
  static constexpr int kTop = 0;

  LeaderTree(int hosts, int most_children) : hosts_(hosts), most_children_(most_children) {}
  // Takes the leaders by host. Each has kMostChildren children at most; but if one that needs an address has none, all are
  // children of the top.
  static LeaderTree of(const std::vector<Member>& leaders);

  // Returns the parent of a host that is not the top.
  int parent_of(int host) const { return (host - 1) / most_children_; }
  std::vector<int> children_of(int host) const;
  // Lists a host and all below it, in their order.
  std::vector<int> subtree_of(int host) const;
  bool is_in_subtree(int host, int of) const;
  // Says whether `me` hears of `host` through `via`, or `via` is that host; `via` is not `me`.
  bool leads_through(int via, int me, int host) const;

 private:
  int hosts_;
  int most_children_;
};

}  // namespace fccl::core
