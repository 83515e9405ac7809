// Short calls of thousands of ranks: their results, and what they cost in messages and in turns.
#include "scale/crowd.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace fccl::core::testing {
namespace {

struct Hosts {
  int hosts, ranks_per_host;
};

// Every rank's result is right.
CrowdCost sum_of_all(Crowd& crowd, int64_t iteration) {
  std::vector<int64_t> given, sums(static_cast<size_t>(crowd.ranks()), -1);
  int64_t wanted = 0;
  for (int64_t rank = 0; rank < crowd.ranks(); ++rank) {
    given.push_back(rank * rank * iteration + 7);
    wanted += given.back();
  }
  const CrowdCost cost = crowd.run([&](int rank) -> Call {
    const auto at = static_cast<size_t>(rank);
    return {{fcclCollAllReduce, fcclInt64, ReduceOp::sum, -1, 1}, &given[at], &sums[at], {}};
  });
  for (size_t rank = 0; rank < sums.size(); ++rank) EXPECT_EQ(sums[rank], wanted) << "rank " << rank;
  return cost;
}

CrowdCost broadcast_of_root(Crowd& crowd, int root, int64_t given) {
  std::vector<int64_t> taken(static_cast<size_t>(crowd.ranks()), -1);
  const CrowdCost cost = crowd.run([&](int rank) -> Call {
    return {{fcclCollBroadcast, fcclInt64, ReduceOp::sum, root, 1}, &given, &taken[static_cast<size_t>(rank)], {}};
  });
  for (size_t rank = 0; rank < taken.size(); ++rank) EXPECT_EQ(taken[rank], given) << "rank " << rank;
  return cost;
}

class Short : public ::testing::TestWithParam<Hosts> {};

// Each rank sends one message a round, and a round takes a turn; up to five turns more are those within the hosts.
TEST_P(Short, calls_take_the_logarithm_of_the_hosts) {
  Crowd crowd(GetParam().hosts, GetParam().ranks_per_host);
  const int rounds = std::bit_width(static_cast<unsigned>(GetParam().hosts - 1));
  for (int iteration = 1; iteration <= 3; ++iteration) {
    const int root = (crowd.ranks() / 3 + 1) * iteration % crowd.ranks();
    for (const CrowdCost& cost : {sum_of_all(crowd, iteration), broadcast_of_root(crowd, root, root * int64_t{1000003})}) {
      EXPECT_EQ(cost.messages, static_cast<uint64_t>(crowd.ranks()) * static_cast<uint64_t>(rounds));
      EXPECT_EQ(cost.messages_of_rank, static_cast<uint64_t>(rounds));
      EXPECT_LE(cost.turns, rounds + 5);
    }
    if (HasFailure()) return;
  }
}

// Rank 1234 makes another call than its host does, a host another one than all others, and rank 3000 none. A host that finds a
// difference tells the others by the leaders.
TEST(Failures, of_some_of_4096_ranks_let_no_rank_end_its_call_and_are_found_where_calls_differ) {
  constexpr int kRanksPerHost = 16, kOddRank = 1234, kOddHost = 200, kAbsent = 3000;
  Crowd crowd(256, kRanksPerHost);
  const std::array<int64_t, 2> given{3, 4};
  std::array<int64_t, 2> taken{};
  const auto states = crowd.attempt(
      [&](int rank) -> Call {
        const bool differs = rank == kOddRank || rank / kRanksPerHost == kOddHost;
        return {{fcclCollAllReduce, fcclInt64, ReduceOp::sum, -1, differs ? size_t{2} : size_t{1}}, given.data(), taken.data()};
      },
      kAbsent);
  for (int rank = 0; rank < crowd.ranks(); ++rank) {
    const int host = rank / kRanksPerHost;
    const bool finds = host == kOddRank / kRanksPerHost || host == kOddHost || host == kOddHost + 1;
    EXPECT_EQ(states[static_cast<size_t>(rank)], finds ? CallState::differs : CallState::open) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Short, ::testing::Values(Hosts{32, 8}, Hosts{128, 8}, Hosts{256, 16}), [](const auto& info) {
  return "hosts_" + std::to_string(info.param.hosts) + "_of_" + std::to_string(info.param.ranks_per_host);
});

}  // namespace
}  // namespace fccl::core::testing
