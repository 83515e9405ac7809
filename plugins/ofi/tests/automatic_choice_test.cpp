// FCCL_TRANSPORT=auto on hosts that have EFA: it is taken, with all its NICs, and by all hosts or none.
#include <gtest/gtest.h>

#include <numeric>

#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

const Launch kTwoAndTwo{.as = RanksAs::processes, .ranks = 4, .host_of = {0, 0, 1, 1}};
const Launch kTwoAndOne{.as = RanksAs::processes, .ranks = 3, .host_of = {0, 0, 1}};

fcclHosts_t hosts_of(fcclComm_t comm) {
  fcclHosts_t hosts{};
  EXPECT_TRUE(succeeded(fcclCommGetHosts(comm, &hosts)));
  return hosts;
}

void expect_an_all_gather(const Seat& seat, fcclComm_t comm) {
  constexpr size_t kCount = 300'001;
  std::vector<int> mine(kCount), all(kCount * static_cast<size_t>(seat.ranks), -1), expected(all.size());
  std::iota(mine.begin(), mine.end(), static_cast<int>(kCount) * seat.rank);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_TRUE(succeeded(fcclAllGather(mine.data(), all.data(), kCount, fcclInt32, comm, nullptr)));
  EXPECT_TRUE(all == expected);
}

TEST(AutomaticChoice, takes_efa_with_all_nics_of_the_host) {
  run_ranks(kTwoAndTwo, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_EQ(hosts_of(comm).rails, 4);
    expect_an_all_gather(seat, comm);
  });
}

TEST(AutomaticChoice, gives_all_nics_to_the_only_column) {
  run_ranks(kTwoAndOne, [](const Seat& seat) {
    const Comm comm(seat);
    const fcclHosts_t hosts = hosts_of(comm);
    EXPECT_EQ(hosts.hosts, 2);
    EXPECT_EQ(hosts.mostRanks, 2);
    EXPECT_EQ(hosts.fewestRanks, 1);
    EXPECT_EQ(hosts.rails, 4);
    expect_an_all_gather(seat, comm);
  });
}

TEST(AutomaticChoice, of_fewer_nics_on_one_host_counts_those) {
  run_ranks(kTwoAndTwo, [](const Seat& seat) {
    const Setting nics("FCCL_NICS", seat.rank < 2 ? "" : "rdmap80s0,rdmap82s0");
    const Comm comm(seat);
    EXPECT_EQ(hosts_of(comm).rails, 2);
    expect_an_all_gather(seat, comm);
  });
}

TEST(AutomaticChoice, lets_each_rank_of_a_host_have_the_nic_that_it_was_given) {
  run_ranks(kTwoAndTwo, [](const Seat& seat) {
    const Setting nics("FCCL_NICS", seat.rank % 2 == 0 ? "rdmap79s0" : "rdmap81s0");
    const Comm comm(seat);
    EXPECT_EQ(hosts_of(comm).rails, 2);
    expect_an_all_gather(seat, comm);
  });
}

TEST(AutomaticChoice, takes_tcp_where_no_host_has_efa_and_where_it_is_asked_for) {
  run_ranks(kTwoAndTwo, [](const Seat& seat) {
    {
      const Setting nics("FCCL_NICS", "lo");
      EXPECT_EQ(hosts_of(Comm(seat)).rails, 1);
    }
    const Setting transport("FCCL_TRANSPORT", "tcp");
    EXPECT_EQ(hosts_of(Comm(seat)).rails, 1);
  });
}

TEST(AutomaticChoice, of_one_host_with_efa_and_one_without_fails_on_all_ranks_and_names_one_of_each) {
  run_ranks(kTwoAndTwo, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const Setting nics("FCCL_NICS", seat.rank < 2 ? "" : "lo");
    fcclConfig_t config = config_of_tests();
    fcclComm_t comm = nullptr;
    EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), fcclInvalidUsage);
    const std::string text = fcclGetLastError(nullptr);
    for (const char* said : {"rank 0 (", "takes efa between hosts", "rank 2 (", "takes tcp", "FCCL_TRANSPORT"})
      EXPECT_NE(text.find(said), std::string::npos) << text;
    seat.meet();
  });
}

}  // namespace
}  // namespace fccl::core::testing
