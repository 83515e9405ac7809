// How communicators come to be and pass away: init, its refusals, split, and what they leave behind.
#include <thread>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

class Membership : public ::testing::TestWithParam<Size> {};

TEST_P(Membership, knows_its_rank_and_the_number_of_ranks) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int rank = -1, ranks = -1, device = -1;
    EXPECT_TRUE(succeeded(fcclCommUserRank(comm, &rank)));
    EXPECT_TRUE(succeeded(fcclCommCount(comm, &ranks)));
    EXPECT_EQ(rank, seat.rank);
    EXPECT_EQ(ranks, seat.ranks);
    EXPECT_EQ(fcclCommCuDevice(comm, &device), fcclInvalidUsage);
  });
}

TEST_P(Membership, of_many_communicators_at_once_keeps_them_apart) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm first(seat), second(seat), third(seat);
    std::mt19937_64 generator(1);
    for (int i = 0; i < 30; ++i)
      for (const fcclComm_t comm : {fcclComm_t{second}, fcclComm_t{first}, fcclComm_t{third}})
        EXPECT_EQ(try_collective(random_recipe(generator, seat.ranks, 20'000, i), seat.rank, seat.ranks, comm), "");
  });
}

TEST_P(Membership, made_and_ended_200_times_leaves_no_descriptor_and_no_thread) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const auto make_and_end = [&] {
      const Comm comm(seat);
      float value = 1;
      EXPECT_TRUE(succeeded(fcclAllReduce(&value, &value, 1, fcclFloat32, fcclSum, comm, nullptr)));
    };
    make_and_end();
    seat.meet();
    // The bootstrap's thread may end a moment after the last rank has joined.
    std::this_thread::sleep_for(200ms);
    const int descriptors = count_descriptors(), threads = count_threads();
    seat.meet();
    for (int round = 0; round < 200; ++round) make_and_end();
    seat.meet();
    for (int patience = 0; patience < 200 && (count_descriptors() > descriptors || count_threads() > threads); ++patience)
      std::this_thread::sleep_for(10ms);
    EXPECT_LE(count_descriptors(), descriptors);
    EXPECT_LE(count_threads(), threads);
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, Membership, ::testing::ValuesIn(sizes(1, 3)), name_of_size);

class Split : public ::testing::TestWithParam<Size> {};

struct Child {
  int rank = -1, ranks = -1;
};

Child describe_child(fcclComm_t comm) {
  Child child;
  EXPECT_TRUE(succeeded(fcclCommUserRank(comm, &child.rank)));
  EXPECT_TRUE(succeeded(fcclCommCount(comm, &child.ranks)));
  return child;
}

TEST_P(Split, by_parity_makes_two_groups_that_work_beside_their_parent) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm parent(seat);
    fcclComm_t made = nullptr;
    ASSERT_TRUE(succeeded(fcclCommSplit(parent, seat.rank % 2, 0, &made, nullptr)));
    const Comm child(made);
    const Child seen = describe_child(child);
    EXPECT_EQ(seen.rank, seat.rank / 2);
    EXPECT_EQ(seen.ranks, (seat.ranks + 1 - seat.rank % 2) / 2);
    for (int i = 0; i < 10; ++i) {
      const Recipe recipe{.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 30'001, .iteration = i};
      EXPECT_EQ(try_collective(recipe, seen.rank, seen.ranks, child), "");
      EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, parent), "");
    }
  });
}

TEST_P(Split, orders_the_ranks_by_key) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm parent(seat);
    fcclComm_t made = nullptr;
    ASSERT_TRUE(succeeded(fcclCommSplit(parent, 5, -seat.rank, &made, nullptr)));
    const Comm child(made);
    const Child seen = describe_child(child);
    EXPECT_EQ(seen.rank, seat.ranks - 1 - seat.rank);
    EXPECT_EQ(try_collective({.collective = fcclCollAllGather, .dtype = fcclInt64, .count = 3}, seen.rank, seen.ranks, child),
              "");
  });
}

TEST_P(Split, without_a_color_gives_no_communicator) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm parent(seat);
    const bool outside = seat.rank == seat.ranks - 1;
    auto made = reinterpret_cast<fcclComm_t>(1);
    ASSERT_TRUE(succeeded(fcclCommSplit(parent, outside ? FCCL_SPLIT_NOCOLOR : 0, 0, &made, nullptr)));
    if (outside) {
      EXPECT_EQ(made, nullptr);
      return;
    }
    const Comm child(made);
    EXPECT_EQ(describe_child(child).ranks, seat.ranks - 1);
    EXPECT_TRUE(succeeded(fcclBarrier(child, nullptr)));
  });
}

TEST_P(Split, lives_longer_than_its_parent) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm parent(seat);
    fcclComm_t made = nullptr;
    ASSERT_TRUE(succeeded(fcclCommSplit(parent, 0, seat.rank, &made, nullptr)));
    const Comm child(made);
    EXPECT_TRUE(succeeded(fcclCommDestroy(parent.release())));
    EXPECT_EQ(try_collective({.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 9}, seat.rank, seat.ranks, child),
              "");
  });
}

TEST_P(Split, takes_the_timeout_of_its_config) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm parent(seat);
    fcclConfig_t config = config_of_tests();
    config.timeoutMs = 100;
    fcclComm_t made = nullptr;
    ASSERT_TRUE(succeeded(fcclCommSplit(parent, 0, seat.rank, &made, &config)));
    const Comm child(made);
    if (seat.rank != 1) {
      EXPECT_EQ(fcclBarrier(child, nullptr), fcclTimeout);
    }
    seat.meet();
    // A child's failure is its own.
    EXPECT_TRUE(succeeded(fcclBarrier(parent, nullptr)));
  });
}

TEST_P(Split, can_be_split_again) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm parent(seat);
    fcclComm_t made = nullptr, grandchild = nullptr;
    ASSERT_TRUE(succeeded(fcclCommSplit(parent, 0, -seat.rank, &made, nullptr)));
    const Comm child(made);
    ASSERT_TRUE(succeeded(fcclCommSplit(child, 1, seat.rank, &grandchild, nullptr)));
    const Comm owned(grandchild);
    EXPECT_EQ(describe_child(owned).rank, seat.rank);
    EXPECT_TRUE(succeeded(fcclBarrier(owned, nullptr)));
  });
}

INSTANTIATE_TEST_SUITE_P(As, Split, ::testing::ValuesIn(sizes(2, 5)), name_of_size);

class InitRefused : public ::testing::TestWithParam<Size> {
 protected:
  // Joins as the claimed rank of the claimed number and returns the result, its text in `text`.
  static fcclResult_t join(const Seat& seat, int ranks, int rank, std::string& text) {
    const fcclUniqueId id = agree_on_id(seat);
    fcclConfig_t config = config_of_tests();
    fcclComm_t comm = nullptr;
    const fcclResult_t result = fcclCommInitRankConfig(&comm, ranks, id, rank, &config);
    text = fcclGetLastError(nullptr);
    EXPECT_EQ(comm, nullptr);
    // The process of rank 0 serves the id, also to those who come late.
    seat.meet();
    return result;
  }
};

TEST_P(InitRefused, when_two_claim_the_same_rank) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::string text;
    EXPECT_EQ(join(seat, seat.ranks, 0, text), fcclInvalidUsage);
    EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
  });
}

TEST_P(InitRefused, when_the_numbers_of_ranks_differ) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::string text;
    EXPECT_EQ(join(seat, seat.ranks + seat.rank, seat.rank, text), fcclInvalidUsage) << text;
  });
}

TEST_P(InitRefused, when_a_rank_never_comes) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    if (seat.rank == seat.ranks - 1) return seat.meet();
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = 300;
    fcclComm_t comm = nullptr;
    const int64_t begin = now_ns();
    const fcclResult_t result = fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config);
    // The first rank that gives up leaves the others.
    EXPECT_TRUE(result == fcclTimeout || result == fcclRemoteError) << result;
    EXPECT_TRUE(in_time(begin, 1300));
    const std::string text = fcclGetLastError(nullptr);
    EXPECT_NE(text.find("rank"), std::string::npos) << text;
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, InitRefused, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
