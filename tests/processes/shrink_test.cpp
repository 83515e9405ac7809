// Shrinks of communicators none of whose ranks has died: who takes part, what the parent can do afterwards, and what is
// refused.
#include <string>
#include <thread>
#include <vector>

#include "processes/elastic.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

class Shrink : public ::testing::TestWithParam<RanksAs> {
 public:
  Launch launch(int ranks) const { return {GetParam(), ranks}; }
};

TEST_P(Shrink, of_a_healthy_communicator_leaves_it_at_work) {
  run_ranks(launch(4), [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank != 1) {
      const Made made = shrink(comm, {1});
      ASSERT_EQ(made.result, fcclSuccess) << made.text;
      const Comm without(made.comm);
      EXPECT_EQ(fault_as_rank(without, seat.rank > 1 ? seat.rank - 1 : 0, 3), "");
    }
    EXPECT_EQ(fault_as_rank(comm, seat.rank, 4), "");
  });
}

TEST_P(Shrink, of_a_shrunk_one_works_down_to_one_rank) {
  run_ranks(launch(3), [](const Seat& seat) {
    fcclComm_t comm = Comm(seat).release();
    for (int ranks = 3; ranks > 1 && seat.rank < ranks - 1; --ranks) {
      const Made made = shrink(comm, {ranks - 1}, ranks == 3 ? FCCL_SHRINK_ABORT : FCCL_SHRINK_DEFAULT);
      fcclCommDestroy(comm);
      comm = made.comm;
      ASSERT_EQ(made.result, fcclSuccess) << made.text;
      EXPECT_EQ(fault_as_rank(comm, seat.rank, ranks - 1), "");
    }
    fcclCommDestroy(comm);
  });
}

TEST_P(Shrink, again_and_again_of_one_parent_works_with_lists_of_any_order) {
  run_ranks(launch(4), [](const Seat& seat) {
    const Comm comm(seat);
    for (int round = 0; round < 6; ++round) {
      const int first = round % 4, second = (round + 1) % 4;
      if (seat.rank != first && seat.rank != second) {
        const Made made = seat.rank % 2 == 0 ? shrink(comm, {first, second}) : shrink(comm, {second, first});
        ASSERT_EQ(made.result, fcclSuccess) << made.text;
        const Comm without(made.comm);
        const int before = (first < seat.rank ? 1 : 0) + (second < seat.rank ? 1 : 0);
        EXPECT_EQ(fault_as_rank(without, seat.rank - before, 2), "");
      }
      seat.meet();
    }
  });
}

TEST_P(Shrink, with_abort_ends_what_is_outstanding_on_every_rank) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm comm(seat);
    fcclStream_t stream = nullptr;
    if (seat.rank == 0) {
      ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
      ASSERT_TRUE(succeeded(fcclBarrier(comm, stream)));
    }
    seat.meet();
    if (seat.rank == 2) {
      // Rank 1 never comes.
      EXPECT_EQ(fcclBarrier(comm, nullptr), fcclAborted);
      return;
    }
    const Made made = shrink(comm, {2}, FCCL_SHRINK_ABORT);
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    if (seat.rank == 0) {
      EXPECT_EQ(fcclStreamSynchronize(stream), fcclAborted);
      fcclStreamDestroy(stream);
    }
    const Comm without(made.comm);
    EXPECT_EQ(fault_as_rank(without, seat.rank, 2), "");
  });
}

TEST_P(Shrink, by_default_refuses_a_communicator_that_has_failed_and_with_abort_takes_it) {
  run_ranks(launch(2), [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclCommRevoke(comm, 0)));
    seat.meet();
    EXPECT_EQ(shrink(comm, {}).result, fcclAborted);
    const Made made = shrink(comm, {}, FCCL_SHRINK_ABORT);
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    const Comm whole(made.comm);
    EXPECT_EQ(fault_as_rank(whole, seat.rank, 2), "");
  });
}

TEST_P(Shrink, refuses_what_is_wrong_on_its_face) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm comm(seat);
    const int other = (seat.rank + 1) % 3;
    const Made own = shrink(comm, {other, seat.rank}), twice = shrink(comm, {other, other}), beyond = shrink(comm, {3}),
               below = shrink(comm, {-1}), flags = shrink(comm, {other}, 2);
    for (const Made& made : {own, twice, beyond, below, flags}) {
      EXPECT_EQ(made.result, fcclInvalidArgument);
      EXPECT_EQ(made.comm, nullptr);
    }
    EXPECT_NE(own.text.find("the calling rank itself"), std::string::npos) << own.text;
    EXPECT_NE(twice.text.find("excludeRanksList[1] is " + std::to_string(other)), std::string::npos) << twice.text;
    EXPECT_NE(beyond.text.find("excludeRanksList[0] is 3: the communicator has ranks 0 to 2"), std::string::npos)
        << beyond.text;
    EXPECT_NE(flags.text.find("shrinkFlags is 2"), std::string::npos) << flags.text;
    fcclComm_t none = nullptr;
    EXPECT_EQ(fcclCommShrink(comm, nullptr, 1, &none, nullptr, 0), fcclInvalidArgument);
    EXPECT_EQ(fcclCommShrink(nullptr, nullptr, 0, &none, nullptr, 0), fcclInvalidArgument);
    EXPECT_EQ(fcclCommShrink(comm, nullptr, 0, nullptr, nullptr, 0), fcclInvalidArgument);
    seat.meet();
    EXPECT_EQ(fault_as_rank(comm, seat.rank, 3), "");
  });
}

TEST_P(Shrink, with_other_lists_is_an_error_on_all_that_names_the_difference_and_may_be_tried_again) {
  run_ranks(launch(4), [](const Seat& seat) {
    const Comm comm(seat);
    // Ranks 0 and 1 believe that 3 is gone, rank 2 that 1 is, too.
    if (seat.rank != 3) {
      const Made made = seat.rank == 2 ? shrink(comm, {3, 1}) : shrink(comm, {3});
      EXPECT_EQ(made.result, fcclInvalidUsage) << made.text;
      EXPECT_NE(made.text.find("excludes rank 3"), std::string::npos) << made.text;
      EXPECT_NE(made.text.find("excludes ranks 1, 3"), std::string::npos) << made.text;
    }
    seat.meet();
    if (seat.rank != 3) {
      const Made made = shrink(comm, {3});
      ASSERT_EQ(made.result, fcclSuccess) << made.text;
      const Comm without(made.comm);
      EXPECT_EQ(fault_as_rank(without, seat.rank, 3), "");
    }
  });
}

// Rank 0 takes no part in the first one and is at the second at once, while rank 1 still waits for rank 2 in the first.
TEST_P(Shrink, behind_one_with_another_list_waits_for_those_who_are_in_that_one) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == 2) std::this_thread::sleep_for(200ms);
    if (seat.rank != 0) {
      const Made first = shrink(comm, {0});
      ASSERT_EQ(first.result, fcclSuccess) << first.text;
      const Comm without(first.comm);
      EXPECT_EQ(fault_as_rank(without, seat.rank - 1, 2), "");
    }
    const Made second = shrink(comm, {});
    ASSERT_EQ(second.result, fcclSuccess) << second.text;
    const Comm all(second.comm);
    EXPECT_EQ(fault_as_rank(all, seat.rank, 3), "");
  });
}

TEST_P(Shrink, that_a_survivor_does_not_come_to_ends_at_the_deadline_and_names_it) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == 0) {
      fcclConfig_t config = FCCL_CONFIG_INITIALIZER;
      config.initTimeoutMs = 300;
      const int64_t begin = now_ns();
      const Made made = shrink(comm, {2}, FCCL_SHRINK_DEFAULT, &config);
      EXPECT_EQ(made.result, fcclTimeout);
      EXPECT_GE(ms_since(begin), 300);
      EXPECT_NE(made.text.find("without rank 2 for rank 1 (pid"), std::string::npos) << made.text;
    }
    seat.meet();
    EXPECT_EQ(fault_as_rank(comm, seat.rank, 3), "");
  });
}

TEST_P(Shrink, that_a_survivor_has_left_before_is_an_error_that_names_it) {
  run_ranks(launch(3), [](const Seat& seat) {
    Comm comm(seat);
    if (seat.rank == 1) fcclCommDestroy(comm.release());
    seat.meet();
    if (seat.rank != 0) return;
    const Made made = shrink(comm, {2});
    EXPECT_EQ(made.result, fcclRemoteError);
    EXPECT_NE(made.text.find("rank 1 (pid"), std::string::npos) << made.text;
  });
}

TEST_P(Shrink, leaves_no_descriptor_and_no_thread) {
  run_ranks(launch(2), [](const Seat& seat) {
    const Comm comm(seat);
    const auto shrink_and_end = [&] {
      const Made made = shrink(comm, {});
      EXPECT_EQ(made.result, fcclSuccess) << made.text;
      fcclCommDestroy(made.comm);
    };
    shrink_and_end();
    seat.meet();
    std::this_thread::sleep_for(200ms);
    const int descriptors = count_descriptors(), threads = count_threads();
    seat.meet();
    for (int round = 0; round < 20; ++round) shrink_and_end();
    seat.meet();
    for (int patience = 0; patience < 200 && (count_descriptors() > descriptors || count_threads() > threads); ++patience)
      std::this_thread::sleep_for(10ms);
    EXPECT_LE(count_descriptors(), descriptors);
    EXPECT_LE(count_threads(), threads);
    seat.meet();
  });
}

TEST_P(Shrink, names_nobody_dead_where_nobody_is) {
  run_ranks(launch(2), [](const Seat& seat) {
    Comm comm(seat);
    int count = 2;
    std::vector<int> dead(2, -7);
    EXPECT_TRUE(succeeded(fcclCommGetDeadRanks(comm, dead.data(), &count)));
    EXPECT_EQ(count, 0);
    EXPECT_EQ(dead, std::vector<int>(2, -7));
    seat.meet();
    // A rank that destroys is not dead.
    if (seat.rank == 1) fcclCommDestroy(comm.release());
    seat.meet();
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(fcclCommGetDeadRanks(comm, nullptr, &count)));
    }
    EXPECT_EQ(count, 0);
    EXPECT_EQ(fcclCommGetDeadRanks(nullptr, nullptr, &count), fcclInvalidArgument);
  });
}

INSTANTIATE_TEST_SUITE_P(As, Shrink, ::testing::ValuesIn(every_kind()), [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace fccl::core::testing
