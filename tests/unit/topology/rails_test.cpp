// Tests of rails: every NIC is used, none much more than another, near ones first; two ranks agree on the rails between them.
#include "topology/rails.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "descriptions.h"

namespace fccl::core {
namespace {

using Lists = std::vector<std::vector<int>>;

Host plain_host(int ranks, int nics, int first_rank = 0) {
  Host host{"h" + std::to_string(first_rank), {}, {}, {}};
  for (int i = 0; i < nics; ++i) host.nics.push_back({"eth" + std::to_string(i), 0, {}});
  for (int i = 0; i < ranks; ++i) host.ranks.push_back({first_rank + i, {}, {}});
  return host;
}

Rails rails_of(std::vector<Host> hosts) {
  const auto topology = Topology::of(std::move(hosts));
  EXPECT_TRUE(topology) << topology.error().message;
  return Rails(*topology);
}

// Returns the host with its ranks renumbered from `first` on.
Host renumbered(Host host, int first) {
  for (Rank& rank : host.ranks) rank.number += first;
  return host;
}

TEST(NicsOfRanks, on_p4d_are_one_for_each_pair_of_gpus) {
  EXPECT_EQ(nics_of_ranks(machine("p4d.24xlarge")), (Lists{{0}, {0}, {1}, {1}, {2}, {2}, {3}, {3}}));
}

TEST(NicsOfRanks, on_p5_are_the_four_below_the_switch_of_the_gpu) {
  const Lists lists = nics_of_ranks(machine("p5.48xlarge"));
  for (int rank = 0; rank < 8; ++rank) {
    std::vector<int> expected(4);
    std::iota(expected.begin(), expected.end(), 4 * rank);
    EXPECT_EQ(lists[rank], expected) << rank;
  }
}

TEST(NicsOfRanks, on_p5en_are_two_and_on_p6_b200_one_below_the_switch_of_the_gpu) {
  for (const auto& [name, count] : {std::pair("p5en.48xlarge", 2U), std::pair("p6-b200.48xlarge", 1U)}) {
    const Host host = machine(name);
    std::set<int> used;
    for (const std::vector<int>& nics : nics_of_ranks(host)) {
      EXPECT_EQ(nics.size(), count) << name;
      used.insert(nics.begin(), nics.end());
    }
    EXPECT_EQ(used.size(), host.nics.size()) << name;
  }
}

TEST(NicsOfRanks, of_every_machine_described_are_below_the_switch_of_the_gpu) {
  for (const char* name : kDescriptions) {
    const Host host = machine(name);
    const Lists lists = nics_of_ranks(host);
    for (size_t rank = 0; rank < lists.size(); ++rank)
      for (const int nic : lists[rank])
        EXPECT_EQ(distance(place_of(host, host.ranks[rank]), host.nics[nic].place), Distance::same_switch) << name << rank;
  }
}

TEST(NicsOfRanks, of_ranks_on_processors_are_of_their_numa_node) {
  Host host = machine("p5.48xlarge");
  for (Rank& rank : host.ranks) rank = {rank.number, {}, 1 - rank.number / 4};
  const Lists lists = nics_of_ranks(host);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(lists[rank].size(), 4u);
    for (const int nic : lists[rank]) EXPECT_EQ(host.nics[nic].place.numa, 1 - rank / 4) << rank;
  }
}

TEST(NicsOfRanks, are_all_of_them_for_a_single_rank_nearest_first) {
  Host host = machine("p4d.24xlarge");
  host.ranks = {{0, 5, {}}};
  EXPECT_EQ(nics_of_ranks(host), (Lists{{2, 3, 0, 1}}));
}

TEST(NicsOfRanks, are_the_one_that_there_is) { EXPECT_EQ(nics_of_ranks(plain_host(3, 1)), (Lists{{0}, {0}, {0}})); }

TEST(NicsOfRanks, are_shared_by_ranks_in_their_order_where_no_place_is_known) {
  EXPECT_EQ(nics_of_ranks(plain_host(4, 2)), (Lists{{0}, {0}, {1}, {1}}));
  EXPECT_EQ(nics_of_ranks(plain_host(3, 2)), (Lists{{0}, {1}, {0}}));
  EXPECT_EQ(nics_of_ranks(plain_host(2, 5)), (Lists{{0, 2, 4}, {1, 3}}));
}

TEST(NicsOfRanks, are_none_where_there_is_none) {
  EXPECT_EQ(nics_of_ranks(plain_host(2, 0)), (Lists{{}, {}}));
  EXPECT_TRUE(nics_of_ranks(plain_host(0, 2)).empty());
}

TEST(NicsOfRanks, are_not_taken_from_a_near_rank_by_one_without_a_place) {
  Host host = plain_host(2, 2);
  host.nics[0].place.numa = 1;
  host.nics[1].place.numa = 0;
  host.ranks[1].numa = 1;
  EXPECT_EQ(nics_of_ranks(host), (Lists{{1}, {0}}));
}

TEST(NicsOfRanks, are_balanced_however_many_there_are) {
  for (int ranks = 1; ranks <= 12; ++ranks)
    for (int nics = 1; nics <= 12; ++nics) {
      Host host = plain_host(ranks, nics);
      // Puts most ranks near few of the NICs.
      for (int i = 0; i < nics; ++i) host.nics[i].place.numa = i % 3 == 0 ? 0 : 1;
      for (int i = 0; i < ranks; ++i) host.ranks[i].numa = i % 4 == 0 ? 1 : 0;
      std::vector<size_t> load(nics), held;
      for (const std::vector<int>& list : nics_of_ranks(host)) {
        held.push_back(list.size());
        EXPECT_EQ(std::set<int>(list.begin(), list.end()).size(), list.size()) << "a NIC is named twice";
        for (const int nic : list) ++load[nic];
      }
      const auto [least_load, most_load] = std::minmax_element(load.begin(), load.end());
      const auto [least_held, most_held] = std::minmax_element(held.begin(), held.end());
      EXPECT_GE(*least_load, 1u) << ranks << " ranks, " << nics << " NICs";
      EXPECT_GE(*least_held, 1u) << ranks << " ranks, " << nics << " NICs";
      EXPECT_LE(*most_load - *least_load, 1u) << ranks << " ranks, " << nics << " NICs";
      EXPECT_LE(*most_held - *least_held, 1u) << ranks << " ranks, " << nics << " NICs";
    }
}

TEST(Rails, join_equal_ranks_of_equal_hosts_by_equal_nics) {
  const Host host = machine("p5.48xlarge");
  const Rails rails = rails_of({host, renumbered(host, 8)});
  for (int rank = 0; rank < 8; ++rank) {
    const std::vector<Rail> joined = rails.between(rank, 8 + rank);
    EXPECT_EQ(joined.size(), 4u);
    for (size_t i = 0; i < joined.size(); ++i) {
      EXPECT_EQ(joined[i].nic, rails.nics_of(rank)[i]);
      EXPECT_EQ(joined[i].peer_nic, joined[i].nic);
    }
  }
  EXPECT_EQ(rails.least(), 4);
}

TEST(Rails, are_as_many_as_the_rank_with_fewer_nics_has) {
  const Rails rails = rails_of({plain_host(1, 4), plain_host(2, 2, 1)});
  EXPECT_EQ(rails.between(0, 1), (std::vector<Rail>{{0, 0}}));
  EXPECT_EQ(rails.between(0, 2), (std::vector<Rail>{{1, 1}}));
  EXPECT_EQ(rails.least(), 1);
}

TEST(Rails, stay_in_one_network_where_a_lone_rank_meets_several) {
  const Rails rails = rails_of({plain_host(3, 2), plain_host(1, 2, 3)});
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<Rail> joined = rails.between(rank, 3);
    ASSERT_EQ(joined.size(), 1u);
    EXPECT_EQ(joined[0].nic, joined[0].peer_nic) << rank;
  }
}

TEST(Rails, spread_the_peers_of_a_rank_over_its_nics_where_numbers_do_not_match) {
  // Ranks 3 and 4 use NICs 2 and 3, which the host of rank 0 lacks.
  const Rails rails = rails_of({plain_host(1, 2), plain_host(4, 4, 1)});
  EXPECT_EQ(rails.between(0, 3), (std::vector<Rail>{{0, 2}}));
  EXPECT_EQ(rails.between(0, 4), (std::vector<Rail>{{1, 3}}));
}

TEST(Rails, look_the_same_from_both_ends) {
  std::vector<Host> hosts;
  int ranks = 0;
  for (const auto& [here, nics] : {std::pair(3, 2), std::pair(1, 4), std::pair(2, 8), std::pair(5, 3)}) {
    hosts.push_back(plain_host(here, nics, ranks));
    ranks += here;
  }
  const auto topology = Topology::of(hosts);
  ASSERT_TRUE(topology);
  const Rails rails(*topology);
  for (int a = 0; a < ranks; ++a)
    for (int b = 0; b < ranks; ++b) {
      if (topology->host_of(a) == topology->host_of(b)) continue;
      std::vector<Rail> seen = rails.between(b, a);
      for (Rail& rail : seen) std::swap(rail.nic, rail.peer_nic);
      EXPECT_EQ(rails.between(a, b), seen) << a << " and " << b;
      EXPECT_EQ(seen.size(), std::min(rails.nics_of(a).size(), rails.nics_of(b).size()));
      EXPECT_GE(static_cast<int>(seen.size()), rails.least());
      for (const Rail& rail : rails.between(a, b)) {
        EXPECT_TRUE(std::ranges::count(rails.nics_of(a), rail.nic));
        EXPECT_TRUE(std::ranges::count(rails.nics_of(b), rail.peer_nic));
      }
    }
}

TEST(Rails, are_none_where_a_host_has_no_nic) {
  const Rails rails = rails_of({plain_host(1, 2), plain_host(1, 0, 1)});
  EXPECT_TRUE(rails.between(0, 1).empty());
  EXPECT_EQ(rails.least(), 0);
}

}  // namespace
}  // namespace fccl::core
