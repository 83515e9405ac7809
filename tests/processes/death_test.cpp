// Ranks that die or go away: every survivor gets an error that names them, within a second. Ranks are processes here.
#include <unistd.h>

#include <csignal>
#include <thread>

#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kVictim = 1;

// Notes the time and dies.
[[noreturn]] void die(const Seat& seat) {
  seat.board.notes[0] = now_ns();
  kill(getpid(), SIGKILL);
  std::abort();
}

// Checks the error that a survivor got just now.
void expect_death_is_known(const Seat& seat, fcclComm_t comm, fcclResult_t result) {
  ASSERT_NE(seat.board.notes[0], 0) << "an error came before the death: " << fcclGetLastError(comm);
  EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
  EXPECT_EQ(result, fcclRemoteError);
  const std::string text = fcclGetLastError(comm);
  EXPECT_NE(text.find("rank 1 (pid"), std::string::npos) << text;
  EXPECT_NE(text.find("died"), std::string::npos) << text;
  // First failures stay.
  EXPECT_EQ(fcclBarrier(comm, nullptr), fcclRemoteError);
  EXPECT_EQ(fcclGetLastError(comm), text);
}

// All ranks repeat an AllReduce of `count` floats until the victim is dead.
void reduce_until_death(const Seat& seat, size_t count) {
  const Comm comm(seat);
  std::vector<float> send(count, 1), recv(count);
  std::thread killer;
  if (seat.rank == kVictim)
    killer = std::thread([&] {
      std::this_thread::sleep_for(40ms);
      die(seat);
    });
  fcclResult_t result = fcclSuccess;
  while (result == fcclSuccess) result = fcclAllReduce(send.data(), recv.data(), count, fcclFloat32, fcclSum, comm, nullptr);
  if (killer.joinable()) killer.join();
  expect_death_is_known(seat, comm, result);
}

class Death : public ::testing::TestWithParam<int> {
 protected:
  static Launch launch() { return {.as = RanksAs::processes, .ranks = GetParam(), .killed = {kVictim}}; }
};

TEST_P(Death, inside_small_collectives_reaches_every_survivor) {
  run_ranks(launch(), [](const Seat& seat) { reduce_until_death(seat, 4); });
}

TEST_P(Death, inside_a_large_collective_reaches_every_survivor) {
  run_ranks(launch(), [](const Seat& seat) { reduce_until_death(seat, 8'000'000); });
}

TEST_P(Death, before_a_call_reaches_those_who_wait_in_it) {
  run_ranks(launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == kVictim) {
      std::this_thread::sleep_for(50ms);
      die(seat);
    }
    expect_death_is_known(seat, comm, fcclBarrier(comm, nullptr));
  });
}

TEST_P(Death, while_all_are_idle_shows_to_who_asks) {
  run_ranks(launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == kVictim) {
      std::this_thread::sleep_for(20ms);
      die(seat);
    }
    fcclResult_t state = fcclSuccess;
    while (state == fcclSuccess) {
      EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
      std::this_thread::sleep_for(1ms);
    }
    expect_death_is_known(seat, comm, state);
  });
}

TEST_P(Death, while_operations_are_on_streams_ends_them) {
  run_ranks(launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == kVictim) {
      std::this_thread::sleep_for(50ms);
      die(seat);
    }
    fcclStream_t stream;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    std::vector<float> send(100'000), recv(100'000);
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(succeeded(fcclAllReduce(send.data(), recv.data(), send.size(), fcclFloat32, fcclSum, comm, stream)));
    expect_death_is_known(seat, comm, fcclStreamSynchronize(stream));
    EXPECT_EQ(fcclStreamDestroy(stream), fcclRemoteError);
  });
}

// A rank that only learns of the failure from others: it enters its call long after the death.
TEST_P(Death, is_the_answer_to_a_call_that_comes_late) {
  run_ranks(launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == kVictim) die(seat);
    while (seat.board.notes[0] == 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(50ms * seat.rank);
    float value = 0;
    EXPECT_EQ(fcclBroadcast(&value, &value, 1, fcclFloat32, 0, comm, nullptr), fcclRemoteError);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("rank 1 (pid"), std::string::npos) << text;
  });
}

INSTANTIATE_TEST_SUITE_P(Of, Death, ::testing::Values(2, 4),
                         [](const auto& info) { return std::to_string(info.param) + "_processes"; });

// Keeps a communicator reachable that the rank ends without destroying, for the leak sanitizer; volatile, since nobody reads
// it.
fcclComm_t volatile undestroyed;

// The rank ends well, but without a word to its peers.
TEST(Exit, without_destroy_reaches_those_who_wait) {
  run_ranks({RanksAs::processes, 3}, [](const Seat& seat) {
    Comm comm(seat);
    if (seat.rank == kVictim) {
      std::this_thread::sleep_for(30ms);
      undestroyed = comm.release();
      seat.board.notes[0] = now_ns();
      return;
    }
    const fcclResult_t result = fcclBarrier(comm, nullptr);
    EXPECT_EQ(result, fcclRemoteError);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("rank 1 (pid"), std::string::npos) << text;
    EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
  });
}

TEST(Exit, with_operations_outstanding_does_not_hang) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    Comm comm(seat);
    if (seat.rank == 0) {
      fcclStream_t stream;
      static float values[2];
      ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
      EXPECT_TRUE(succeeded(fcclAllReduce(values, values, 2, fcclFloat32, fcclSum, comm, stream)));
      undestroyed = comm.release();
      return;
    }
    while (fcclBarrier(comm, nullptr) == fcclSuccess) {
    }
  });
}

TEST(DeathInInit, while_ranks_join_is_an_error_of_those_who_have_joined) {
  run_ranks({.as = RanksAs::processes, .ranks = 3, .killed = {kVictim}}, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    fcclConfig_t config = config_of_tests();
    fcclComm_t comm = nullptr;
    if (seat.rank == kVictim) {
      std::thread([&] {
        std::this_thread::sleep_for(100ms);
        die(seat);
      }).detach();
    }
    // Rank 2 never comes, so the others wait in init when the victim dies.
    if (seat.rank == 2) return;
    EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), fcclRemoteError);
    EXPECT_EQ(comm, nullptr);
    const std::string text = fcclGetLastError(nullptr);
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
  });
}

}  // namespace
}  // namespace fccl::core::testing
