// Tests of who is whose parent in the tree of leaders, and of whom news comes through whom.
#include "host_link/leader_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace fccl::core {
namespace {

const std::vector<int> kManyChildren{1, 2, 3, 16};

// Returns the hosts on the way from one to another, without the first: up to where their lines meet, and down.
std::vector<int> way(const LeaderTree& tree, int from, int to) {
  std::vector<int> up, down;
  while (from != to) {
    if (from > to) {
      from = tree.parent_of(from);
      up.push_back(from);
    } else {
      down.push_back(to);
      to = tree.parent_of(to);
    }
  }
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

TEST(LeaderTree, every_host_but_the_top_is_the_child_of_its_parent_alone) {
  for (const int most_children : kManyChildren)
    for (int hosts = 1; hosts <= 70; ++hosts) {
      const LeaderTree tree(hosts, most_children);
      std::multiset<int> children;
      for (int host = 0; host < hosts; ++host) {
        const std::vector<int> own = tree.children_of(host);
        EXPECT_LE(own.size(), static_cast<size_t>(most_children));
        for (const int child : own) EXPECT_EQ(tree.parent_of(child), host) << hosts;
        children.insert(own.begin(), own.end());
      }
      std::multiset<int> all;
      for (int host = 1; host < hosts; ++host) all.insert(host);
      EXPECT_EQ(children, all) << hosts;
    }
}

TEST(LeaderTree, a_subtree_has_those_whose_way_to_the_top_leads_through_its_top) {
  for (const int most_children : kManyChildren) {
    const LeaderTree tree(40, most_children);
    for (int top = 0; top < 40; ++top) {
      std::vector<int> expected;
      for (int host = 0; host < 40; ++host) {
        const std::vector<int> up = way(tree, host, LeaderTree::kTop);
        if (host == top || std::ranges::find(up, top) != up.end()) expected.push_back(host);
      }
      EXPECT_EQ(tree.subtree_of(top), expected) << most_children << " " << top;
    }
  }
}

TEST(LeaderTree, news_of_a_host_comes_through_those_on_the_way_to_it) {
  constexpr int kHosts = 24;
  for (const int most_children : kManyChildren) {
    const LeaderTree tree(kHosts, most_children);
    for (int me = 0; me < kHosts; ++me)
      for (int host = 0; host < kHosts; ++host) {
        const std::vector<int> passed = way(tree, me, host);
        for (int via = 0; via < kHosts; ++via) {
          if (via == me) continue;
          EXPECT_EQ(tree.leads_through(via, me, host), std::ranges::find(passed, via) != passed.end())
              << most_children << ": from " << me << " to " << host << " through " << via;
        }
      }
  }
}

// Leaders of so many hosts, of which those that need addresses have some.
std::vector<Member> leaders_with_addresses(int hosts) {
  std::vector<Member> leaders(static_cast<size_t>(hosts));
  for (int host = 0; host < hosts; ++host)
    if (leads_others(host, hosts)) leaders[static_cast<size_t>(host)].address = "10.0.0.1:" + std::to_string(4000 + host);
  return leaders;
}

TEST(LeaderTree, has_sixteen_children_for_each_leader_beyond_seventeen_hosts) {
  for (const int hosts : {1, 2, 17, 18, 300}) {
    const LeaderTree tree = LeaderTree::of(leaders_with_addresses(hosts));
    EXPECT_EQ(tree.children_of(0).size(), static_cast<size_t>(std::min(hosts - 1, 16)));
    EXPECT_EQ(tree.parent_of(16), 0);
    EXPECT_EQ(tree.parent_of(17), 1);
    for (int host = 1; host < hosts; ++host) EXPECT_EQ(!tree.children_of(host).empty(), leads_others(host, hosts)) << host;
  }
}

TEST(LeaderTree, is_a_star_if_a_leader_that_needs_an_address_has_none) {
  std::vector<Member> leaders = leaders_with_addresses(100);
  leaders[3].address.clear();
  EXPECT_EQ(LeaderTree::of(leaders).children_of(0).size(), 99U);
}

}  // namespace
}  // namespace fccl::core
