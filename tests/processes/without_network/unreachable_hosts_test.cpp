// Communicators of several hosts where what reaches other hosts is missing: nobody gets one, and all are told what to install.
#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

class UnreachableHosts : public ::testing::TestWithParam<OnHosts> {};

TEST_P(UnreachableHosts, are_an_error_of_every_rank_that_says_at_once_what_to_install) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    expect_no_communicator(seat, agree_on_id(seat), fcclSystemError, {FCCL_TEST_WORDS, "install", "rank "});
  });
}

INSTANTIATE_TEST_SUITE_P(On, UnreachableHosts, ::testing::Values(kTwoAndTwo, kThreeAndOne), name_of_hosts);

TEST(OneHost, is_all_that_its_ranks_need) {
  run_ranks({.as = RanksAs::processes, .ranks = 2}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(reduce(comm, 1000)));
  });
}

}  // namespace
}  // namespace fccl::core::testing
