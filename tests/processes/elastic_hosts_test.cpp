// Shrinks and growths of communicators that span hosts: the others go on, also after the death of a host's first rank or of the
// one over which hosts hear of each other.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "processes/elastic.h"
#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// A communicator of several hosts, and those of its ranks that are left out.
struct Without {
  const char* name;
  OnHosts hosts;
  std::vector<int> ranks;

  bool has(int rank) const { return std::ranges::count(ranks, rank) > 0; }
  int rest() const { return hosts.ranks() - static_cast<int>(ranks.size()); }
  int number_of(int rank) const {
    return rank - static_cast<int>(std::ranges::count_if(ranks, [&](int other) { return other < rank; }));
  }
  Placement placement() const {
    Placement placement;
    for (int rank = 0; rank < hosts.ranks(); ++rank)
      if (!has(rank)) placement.host_of.push_back(hosts.host_of[static_cast<size_t>(rank)]);
    return placement;
  }
};

void PrintTo(const Without& without, std::ostream* out) { *out << without.name; }

class HostShrink : public ::testing::TestWithParam<Without> {};

TEST_P(HostShrink, of_a_healthy_communicator_leaves_it_at_work) {
  run_ranks(GetParam().hosts.launch(), [](const Seat& seat) {
    const Without& without = GetParam();
    const Comm comm(seat);
    for (int round = 0; round < 2; ++round) {
      if (!without.has(seat.rank)) {
        const Made made = shrink(comm, without.ranks);
        ASSERT_EQ(made.result, fcclSuccess) << made.text;
        const Comm rest(made.comm);
        EXPECT_EQ(fault_as_rank(rest, without.number_of(seat.rank), without.rest(), without.placement()), "");
      }
      seat.meet();
    }
    EXPECT_EQ(fault_as_rank(comm, seat.rank, seat.ranks, {.host_of = without.hosts.host_of}), "");
  });
}

TEST_P(HostShrink, after_deaths_gives_the_survivors_a_communicator_that_works_within_a_second) {
  Launch launch = GetParam().hosts.launch();
  launch.killed = GetParam().ranks;
  run_ranks(launch, [](const Seat& seat) {
    const Without& without = GetParam();
    fcclComm_t comm = Comm(seat).release();
    if (without.has(seat.rank))
      std::thread([&seat] {
        std::this_thread::sleep_for(40ms);
        int64_t nobody = 0;
        seat.board.notes[0].compare_exchange_strong(nobody, now_ns());
        kill(getpid(), SIGKILL);
      }).detach();
    const fcclResult_t result = reduce_until_failure(comm, 100'000);
    if (without.has(seat.rank)) std::this_thread::sleep_for(30s);
    EXPECT_EQ(result, fcclRemoteError) << fcclGetLastError(comm);
    const Made made = shrink(comm, without.ranks, FCCL_SHRINK_ABORT);
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
    // The old one may go before the new one, or after it.
    if (seat.rank % 2 == 0) fcclCommDestroy(comm);
    EXPECT_EQ(fault_as_rank(made.comm, without.number_of(seat.rank), without.rest(), without.placement()), "");
    if (seat.rank % 2 == 1) fcclCommDestroy(comm);
    EXPECT_EQ(fault_as_rank(made.comm, without.number_of(seat.rank), without.rest(), without.placement()), "");
    fcclCommDestroy(made.comm);
  });
}

std::string name_of_without(const ::testing::TestParamInfo<Without>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Without, HostShrink,
                         ::testing::Values(Without{"a_first_rank", kTwoAndTwo, {2}}, Without{"the_hub", kInTurn, {0}}),
                         name_of_without);
INSTANTIATE_TEST_SUITE_P(LongWithout, HostShrink,
                         ::testing::Values(Without{"a_last_rank", kTwoAndTwo, {3}},
                                           Without{"the_hub_of_three_hosts", kTwoAndOneAndOne, {0}},
                                           Without{"the_hub_and_its_host", kThreeAndOne, {0, 1, 2}},
                                           Without{"a_host", kTwoAndTwo, {2, 3}},
                                           Without{"a_first_rank_of_three_hosts", kOneAndTwoAndOne, {1}}),
                         name_of_without);

class HostShrinkOfOne : public ::testing::TestWithParam<int> {};

TEST_P(HostShrinkOfOne, that_has_died_names_it_on_every_host_and_a_new_rank_of_a_third_host_grows_in) {
  static const int victim = GetParam();
  // The new one is on a host of its own.
  run_ranks({.as = RanksAs::processes, .ranks = 5, .killed = {victim}, .host_of = {0, 0, 1, 1, 2}}, [](const Seat& seat) {
    fcclComm_t comm = make_parent(seat, 4);
    seat.meet();
    fcclComm_t rest = nullptr;
    fcclUniqueId id{};
    Placement placement{.host_of = {0, 0, 1, 1}};
    placement.host_of.erase(placement.host_of.begin() + victim);
    const int rank = seat.rank - (seat.rank > victim ? 1 : 0);
    if (seat.rank == victim) kill(getpid(), SIGKILL);
    if (seat.rank < 4) {
      EXPECT_EQ(reduce_until_failure(comm, 9), fcclRemoteError);
      std::vector<int> dead(4, -7);
      int count = 0;
      for (int patience = 0; patience < 1000 && count == 0; ++patience) {
        count = 4;
        EXPECT_TRUE(succeeded(fcclCommGetDeadRanks(comm, dead.data(), &count)));
        std::this_thread::sleep_for(1ms);
      }
      ASSERT_EQ(count, 1);
      EXPECT_EQ(dead.front(), victim);
      const Made made = shrink(comm, {victim}, FCCL_SHRINK_ABORT);
      ASSERT_EQ(made.result, fcclSuccess) << made.text;
      rest = made.comm;
      EXPECT_EQ(fault_as_rank(rest, rank, 3, placement), "");
      if (rank == 1) {
        ASSERT_TRUE(succeeded(fcclCommGetUniqueId(rest, &seat.board.id)));
        seat.board.notes[1] = 1;
      }
    } else {
      while (seat.board.notes[1] == 0) std::this_thread::sleep_for(1ms);
      id = seat.board.id;
    }
    placement.host_of.push_back(2);
    const int64_t begin = now_ns();
    const Made made = grow(rest, 4, rest == nullptr ? &id : nullptr, 3);
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    EXPECT_TRUE(in_time(begin, 2000));
    EXPECT_EQ(fault_as_rank(made.comm, rank, 4, placement), "");
    fcclCommDestroy(comm);
    fcclCommDestroy(rest);
    fcclCommDestroy(made.comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Without, HostShrinkOfOne, ::testing::Values(2));
INSTANTIATE_TEST_SUITE_P(LongWithout, HostShrinkOfOne, ::testing::Values(0, 1, 3));

TEST(HostShrinks, with_other_lists_is_an_error_on_all_that_shows_them_and_may_be_tried_again) {
  run_ranks(kInTurn.launch(), [](const Seat& seat) {
    const Comm comm(seat);
    // Ranks 0 and 2 of one host believe that 3 is gone, rank 1 of the other that 2 is, too.
    if (seat.rank != 3) {
      const Made made = seat.rank == 1 ? shrink(comm, {2, 3}) : shrink(comm, {3});
      EXPECT_EQ(made.result, fcclInvalidUsage) << made.text;
      for (const char* word : {"excludeRanksList=3\"", "excludeRanksList=2,3\"", "in fcclCommShrink without rank"})
        EXPECT_NE(made.text.find(word), std::string::npos) << word << " is not in: " << made.text;
    }
    seat.meet();
    if (seat.rank != 3) {
      const Made made = shrink(comm, {3});
      ASSERT_EQ(made.result, fcclSuccess) << made.text;
      const Comm rest(made.comm);
      EXPECT_EQ(fault_as_rank(rest, seat.rank, 3, {.host_of = {0, 1, 0}}), "");
    }
  });
}

// Rank 0 is the first survivor of both shrinks. The first leaves rank 2 out, so rank 2 is in the second while rank 0 still
// waits for rank 1 in the first.
TEST(HostShrinks, in_a_row_with_different_lists_and_the_same_first_survivor_do_not_meet) {
  run_ranks({.as = RanksAs::processes, .ranks = 3, .host_of = {0, 1, 2}}, [](const Seat& seat) {
    const Comm comm(seat);
    for (int round = 0; round < 3; ++round) {
      if (seat.rank == 1) std::this_thread::sleep_for(250ms);
      if (seat.rank != 2) {
        const Made made = shrink(comm, {2});
        ASSERT_EQ(made.result, fcclSuccess) << made.text;
        const Comm rest(made.comm);
        EXPECT_EQ(fault_as_rank(rest, seat.rank, 2, {.host_of = {0, 1}}), "");
      }
      const Made made = shrink(comm, {});
      ASSERT_EQ(made.result, fcclSuccess) << made.text;
      const Comm all(made.comm);
      EXPECT_EQ(fault_as_rank(all, seat.rank, 3, {.host_of = {0, 1, 2}}), "");
    }
  });
}

TEST(HostShrinks, that_fail_do_not_fail_the_next_one_of_a_rank_that_they_left_out) {
  run_ranks({.as = RanksAs::processes, .ranks = 3, .host_of = {0, 1, 2}}, [](const Seat& seat) {
    const Comm comm(seat);
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = 300;
    // Rank 1 does not come to the first shrink, and is late for the second.
    if (seat.rank == 0) {
      const Made made = shrink(comm, {2}, FCCL_SHRINK_DEFAULT, &config);
      EXPECT_EQ(made.result, fcclTimeout);
      EXPECT_NE(made.text.find("missing: rank 1"), std::string::npos) << made.text;
    }
    if (seat.rank == 1) std::this_thread::sleep_for(600ms);
    const Made made = shrink(comm, {});
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    const Comm all(made.comm);
    EXPECT_EQ(fault_as_rank(all, seat.rank, 3, {.host_of = {0, 1, 2}}), "");
  });
}

TEST(HostShrinks, that_a_survivor_does_not_come_to_ends_at_the_deadline_and_names_it) {
  run_ranks(kTwoAndOneAndOne.launch(), [](const Seat& seat) {
    const Comm comm(seat);
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = 400;
    // Rank 2 never comes, so that the root misses it, and then the root never does.
    if (seat.rank == 0 || seat.rank == 3) {
      const Made made = shrink(comm, {1}, FCCL_SHRINK_DEFAULT, &config);
      EXPECT_EQ(made.result, fcclTimeout);
      EXPECT_NE(made.text.find("missing: rank 1"), std::string::npos) << made.text;
      EXPECT_NE(made.text.find("without rank 1, which counts the ranks anew from rank 0 (pid"), std::string::npos) << made.text;
    }
    seat.meet();
    if (seat.rank == 3) {
      const Made made = shrink(comm, {1}, FCCL_SHRINK_DEFAULT, &config);
      EXPECT_EQ(made.result, fcclTimeout);
      EXPECT_NE(made.text.find("cannot be reached: Connection refused"), std::string::npos) << made.text;
    }
    seat.meet();
    EXPECT_EQ(fault_as_rank(comm, seat.rank, seat.ranks, {.host_of = kTwoAndOneAndOne.host_of}), "");
  });
}

TEST(HostShrinks, leave_no_descriptor_and_no_thread) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const auto shrink_and_end = [&] {
      const Made made = shrink(comm, {});
      EXPECT_EQ(made.result, fcclSuccess) << made.text;
      fcclCommDestroy(made.comm);
      seat.meet();
    };
    shrink_and_end();
    std::this_thread::sleep_for(200ms);
    const int descriptors = count_descriptors(), threads = count_threads();
    seat.meet();
    for (int round = 0; round < 5; ++round) shrink_and_end();
    for (int patience = 0; patience < 200 && (count_descriptors() > descriptors || count_threads() > threads); ++patience)
      std::this_thread::sleep_for(10ms);
    EXPECT_LE(count_descriptors(), descriptors);
    EXPECT_LE(count_threads(), threads);
    seat.meet();
  });
}

}  // namespace
}  // namespace fccl::core::testing
