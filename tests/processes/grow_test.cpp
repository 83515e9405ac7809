// Growth of a communicator by new ranks: who learns the id, what the old one can do afterwards, what is refused, and how a
// grow ends that cannot be.
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "processes/elastic.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

class Grow : public ::testing::TestWithParam<RanksAs> {
 public:
  Launch launch(int ranks) const { return {GetParam(), ranks}; }
};

#define EXPECT_SAYS(made, words) EXPECT_NE((made).text.find(words), std::string::npos) << (made).text

TEST_P(Grow, by_two_new_ranks_works_and_leaves_the_old_one_at_work) {
  run_ranks(launch(4), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 2));
    const fcclUniqueId id = agree_to_grow(seat, parent);
    const Made made = grow(parent, 4, seat.rank < 2 ? nullptr : &id, seat.rank);
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    const Comm grown(made.comm);
    EXPECT_EQ(fault_as_rank(grown, seat.rank, 4), "");
    if (seat.rank < 2) {
      EXPECT_EQ(fault_as_rank(parent, seat.rank, 2), "");
    }
    EXPECT_EQ(fault_as_rank(grown, seat.rank, 4), "");
  });
}

TEST_P(Grow, by_an_id_of_any_rank_works_for_those_that_give_it_too_and_again) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 2));
    for (int host = 0; host < 2; ++host) {
      const fcclUniqueId id = agree_to_grow(seat, parent, host);
      const Made made = grow(parent, 3, seat.rank == 1 - host ? nullptr : &id, seat.rank);
      ASSERT_EQ(made.result, fcclSuccess) << made.text;
      const Comm grown(made.comm);
      EXPECT_EQ(fault_as_rank(grown, seat.rank, 3), "");
      seat.meet();
    }
  });
}

TEST_P(Grow, of_one_rank_step_by_step_outlives_its_parents) {
  run_ranks(launch(3), [](const Seat& seat) {
    fcclComm_t comm = make_parent(seat, 1);
    for (int ranks = 1; ranks < 3; ++ranks) {
      const fcclUniqueId id = agree_to_grow(seat, comm);
      if (seat.rank <= ranks) {
        const Made made = grow(comm, ranks + 1, &id, seat.rank);
        fcclCommDestroy(comm);
        comm = made.comm;
        ASSERT_EQ(made.result, fcclSuccess) << made.text;
      }
      seat.meet();
    }
    const Comm grown(comm);
    EXPECT_EQ(fault_as_rank(grown, seat.rank, 3), "");
  });
}

TEST_P(Grow, waits_for_whoever_comes_late) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 2));
    for (int late = 0; late < 3; ++late) {
      const fcclUniqueId id = agree_to_grow(seat, parent);
      if (seat.rank == late) std::this_thread::sleep_for(50ms);
      const Made made = grow(parent, 3, &id, seat.rank);
      ASSERT_EQ(made.result, fcclSuccess) << made.text;
      const Comm grown(made.comm);
      EXPECT_EQ(fault_as_rank(grown, seat.rank, 3), "");
      seat.meet();
    }
  });
}

TEST_P(Grow, goes_behind_what_is_on_streams_of_the_parent) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 2));
    const fcclUniqueId id = agree_to_grow(seat, parent);
    fcclStream_t stream = nullptr;
    std::vector<int> sum(300'000, seat.rank + 1);
    if (seat.rank < 2) {
      ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
      ASSERT_TRUE(succeeded(fcclAllReduce(sum.data(), sum.data(), sum.size(), fcclInt32, fcclSum, parent, stream)));
    }
    const Made made = grow(parent, 3, &id, seat.rank);
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    const Comm grown(made.comm);
    EXPECT_EQ(fault_as_rank(grown, seat.rank, 3), "");
    if (seat.rank == 2) return;
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(sum, std::vector<int>(300'000, 3));
    fcclStreamDestroy(stream);
  });
}

TEST_P(Grow, refuses_what_is_wrong_on_its_face) {
  run_ranks(launch(2), [](const Seat& seat) {
    const Comm parent(seat);
    const fcclUniqueId none{};
    fcclComm_t comm = nullptr;
    const auto text = [] { return std::string(fcclGetLastError(nullptr)); };
    EXPECT_EQ(fcclCommGrow(parent, 2, nullptr, -1, &comm, nullptr), fcclInvalidArgument);
    EXPECT_NE(text().find("nRanks is 2: the communicator has 2 ranks"), std::string::npos) << text();
    EXPECT_EQ(fcclCommGrow(parent, 3, nullptr, seat.rank, &comm, nullptr), fcclInvalidArgument);
    EXPECT_NE(text().find("gives -1"), std::string::npos) << text();
    EXPECT_EQ(fcclCommGrow(nullptr, 3, nullptr, 2, &comm, nullptr), fcclInvalidArgument);
    EXPECT_NE(text().find("comm and uniqueId are NULL"), std::string::npos) << text();
    EXPECT_EQ(fcclCommGrow(nullptr, 3, &none, 3, &comm, nullptr), fcclInvalidArgument);
    EXPECT_NE(text().find("rank 3 of 3 ranks"), std::string::npos) << text();
    EXPECT_EQ(fcclCommGrow(nullptr, 3, &none, 2, &comm, nullptr), fcclInvalidArgument);
    EXPECT_NE(text().find("all zeros"), std::string::npos) << text();
    EXPECT_EQ(fcclCommGrow(parent, 3, &none, -1, &comm, nullptr), fcclInvalidArgument);
    EXPECT_EQ(fcclCommGrow(parent, 3, nullptr, -1, nullptr, nullptr), fcclInvalidArgument);
    EXPECT_EQ(fcclCommGetUniqueId(nullptr, &seat.board.id), fcclInvalidArgument);
    EXPECT_EQ(fcclCommGetUniqueId(parent, nullptr), fcclInvalidArgument);
    EXPECT_EQ(comm, nullptr);
    seat.meet();
    EXPECT_EQ(fault_as_rank(parent, seat.rank, 2), "");
  });
}

TEST_P(Grow, without_an_id_or_to_other_numbers_is_an_error_on_all_and_may_be_tried_again) {
  run_ranks(launch(4), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 3));
    if (seat.rank < 3) {
      const Made none = grow(parent, 4, nullptr, -1);
      EXPECT_EQ(none.result, fcclInvalidUsage);
      EXPECT_SAYS(none, "none of the 3 ranks has a unique id");
    }
    const fcclUniqueId id = agree_to_grow(seat, parent, 1);
    fcclUniqueId second;
    if (seat.rank == 1) {
      EXPECT_EQ(fcclCommGetUniqueId(parent, &second), fcclInvalidUsage);
    }
    if (seat.rank == 2) {
      EXPECT_TRUE(succeeded(fcclCommGetUniqueId(parent, &second)));
    }
    if (seat.rank < 3) {
      const Made ids = grow(parent, 4, nullptr, -1);
      EXPECT_EQ(ids.result, fcclInvalidUsage);
      EXPECT_SAYS(ids, "rank 1 (pid");
      EXPECT_SAYS(ids, "rank 2 (pid");
      const Made numbers = grow(parent, seat.rank == 2 ? 5 : 4, &id, -1);
      EXPECT_EQ(numbers.result, fcclInvalidUsage);
      EXPECT_SAYS(numbers, "gives nRanks = 4, rank 2 (pid");
    }
    const Made made = grow(parent, 4, &id, seat.rank);
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    const Comm grown(made.comm);
    EXPECT_EQ(fault_as_rank(grown, seat.rank, 4), "");
  });
}

TEST_P(Grow, with_a_new_rank_that_takes_the_number_of_another_is_an_error_on_all_that_names_both) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 2));
    const fcclUniqueId id = agree_to_grow(seat, parent);
    const Made made = grow(parent, 3, &id, 1);
    EXPECT_EQ(made.result, fcclInvalidUsage);
    EXPECT_SAYS(made, "rank 1 joined twice, from rank 1 (pid");
    seat.meet();
    if (seat.rank < 2) {
      EXPECT_EQ(fault_as_rank(parent, seat.rank, 2), "");
    }
  });
}

TEST_P(Grow, with_a_new_rank_that_gives_another_number_of_ranks_is_an_error_on_all) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 2));
    const fcclUniqueId id = agree_to_grow(seat, parent);
    const Made made = grow(parent, seat.rank == 2 ? 4 : 3, &id, seat.rank);
    EXPECT_EQ(made.result, fcclInvalidUsage);
    EXPECT_SAYS(made, "communicator of ");
    EXPECT_SAYS(made, "rank 2 (pid");
    seat.meet();
  });
}

TEST_P(Grow, that_a_new_rank_does_not_come_to_ends_at_the_deadline_names_it_and_leaves_the_parent_good) {
  run_ranks(launch(3), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 2));
    const fcclUniqueId id = agree_to_grow(seat, parent);
    if (seat.rank < 2) {
      const int64_t begin = now_ns();
      const Made made = grow(parent, 3, &id, -1, 300);
      EXPECT_EQ(made.result, fcclTimeout);
      EXPECT_EQ(made.comm, nullptr);
      EXPECT_GE(ms_since(begin), 250);
      EXPECT_SAYS(made, "missing: rank 2");
      EXPECT_EQ(fault_as_rank(parent, seat.rank, 2), "");
    }
    const fcclUniqueId again = agree_to_grow(seat, parent);
    const Made made = grow(parent, 3, &again, seat.rank);
    ASSERT_EQ(made.result, fcclSuccess) << made.text;
    const Comm grown(made.comm);
    EXPECT_EQ(fault_as_rank(grown, seat.rank, 3), "");
  });
}

TEST_P(Grow, by_an_id_whose_communicator_has_gone_tells_the_new_rank_at_once) {
  run_ranks(launch(2), [](const Seat& seat) {
    fcclComm_t parent = make_parent(seat, 1);
    const fcclUniqueId id = agree_to_grow(seat, parent);
    if (seat.rank == 0) {
      std::this_thread::sleep_for(50ms);
      fcclCommDestroy(parent);
    } else {
      const int64_t begin = now_ns();
      const Made made = grow(nullptr, 2, &id, 1);
      EXPECT_EQ(made.result, fcclRemoteError) << made.text;
      EXPECT_TRUE(in_time(begin, 2000));
    }
    seat.meet();
  });
}

TEST_P(Grow, after_a_failure_of_the_parent_is_refused_with_its_cause) {
  run_ranks(launch(2), [](const Seat& seat) {
    const Comm parent(seat);
    EXPECT_TRUE(succeeded(fcclCommRevoke(parent, 0)));
    seat.meet();
    fcclUniqueId id;
    EXPECT_EQ(fcclCommGetUniqueId(parent, &id), fcclAborted);
    EXPECT_EQ(grow(parent, 3, nullptr, -1).result, fcclAborted);
  });
}

TEST_P(Grow, leaves_no_descriptor_and_no_thread) {
  run_ranks(launch(2), [](const Seat& seat) {
    const Comm parent(make_parent(seat, 1));
    const auto grow_and_end = [&] {
      const fcclUniqueId id = agree_to_grow(seat, parent);
      const Made made = grow(parent, 2, &id, seat.rank);
      EXPECT_EQ(made.result, fcclSuccess) << made.text;
      fcclCommDestroy(made.comm);
      seat.meet();
    };
    grow_and_end();
    std::this_thread::sleep_for(200ms);
    const int descriptors = count_descriptors(), threads = count_threads();
    seat.meet();
    for (int round = 0; round < 10; ++round) grow_and_end();
    for (int patience = 0; patience < 200 && (count_descriptors() > descriptors || count_threads() > threads); ++patience)
      std::this_thread::sleep_for(10ms);
    EXPECT_LE(count_descriptors(), descriptors);
    EXPECT_LE(count_threads(), threads);
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, Grow, ::testing::ValuesIn(every_kind()), [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace fccl::core::testing
