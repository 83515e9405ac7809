// Sends and receives that cannot end well: every rank of the communicator gets the reason, which names both ends.
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "processes/parcel.h"
#include "processes/size.h"
#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

void expect_text(fcclComm_t comm, const std::vector<std::string>& words) {
  const std::string text = fcclGetLastError(comm);
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

fcclConfig_t impatient(int timeout_ms) {
  fcclConfig_t config = config_of_tests();
  config.timeoutMs = timeout_ms;
  return config;
}

class PointToPointFailures : public ::testing::TestWithParam<Size> {
 protected:
  // Rank 0 sends what `sent` says, rank 1 receives what `received` says.
  static void expect_difference(const Route& sent, const Route& received, const std::vector<std::string>& words) {
    run_ranks(GetParam().launch(), [=](const Seat& seat) {
      const Comm comm(seat);
      // A rank that is still on its way out of init would have the failure there.
      seat.meet();
      if (seat.rank > 1) {
        seat.meet();
        EXPECT_EQ(fcclBarrier(comm, nullptr), fcclInvalidUsage);
        return expect_text(comm, words);
      }
      Parcel parcel(seat.rank == 0 ? sent : received);
      const int64_t begin = now_ns();
      fcclResult_t result = seat.rank == 0 ? parcel.send(comm) : parcel.receive(comm);
      if (seat.rank == 0 && result == fcclSuccess) result = fcclBarrier(comm, nullptr);
      EXPECT_EQ(result, fcclInvalidUsage);
      EXPECT_TRUE(in_time(begin, 1000));
      expect_text(comm, words);
      seat.meet();
    });
  }
};

TEST_P(PointToPointFailures, of_short_counts_that_differ_show_both) {
  expect_difference({.from = 0, .to = 1, .count = 10, .dtype = fcclInt32},
                    {.from = 0, .to = 1, .count = 11, .dtype = fcclInt32},
                    {"Send of 10 int32 to rank 1", "Recv of 11 int32 from rank 0", "rank 0 (pid", "rank 1 (pid"});
}

TEST_P(PointToPointFailures, of_long_counts_that_differ_show_both) {
  expect_difference({.from = 0, .to = 1, .count = 1'000'000, .tag = 3}, {.from = 0, .to = 1, .count = 999'999, .tag = 3},
                    {"Send of 1000000 uint8 to rank 1 with tag 3", "Recv of 999999 uint8 from rank 0 with tag 3"});
}

TEST_P(PointToPointFailures, of_a_long_send_to_a_short_receive_show_both) {
  expect_difference({.from = 0, .to = 1, .count = 1'000'000}, {.from = 0, .to = 1, .count = 3},
                    {"Send of 1000000 uint8", "Recv of 3 uint8"});
}

TEST_P(PointToPointFailures, of_types_of_equal_size_show_both) {
  expect_difference({.from = 0, .to = 1, .count = 5, .dtype = fcclInt32},
                    {.from = 0, .to = 1, .count = 5, .dtype = fcclFloat32}, {"Send of 5 int32", "Recv of 5 float32"});
}

TEST_P(PointToPointFailures, of_a_send_that_nobody_receives_come_at_the_deadline_and_name_both_ends) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat, impatient(300 * kSlowdown));
    if (seat.rank == 0) {
      Parcel parcel({.from = 0, .to = 1, .count = 1'000'000});
      EXPECT_EQ(parcel.send(comm), fcclTimeout);
      expect_text(comm, {"rank 0 has waited", "rank 1 (pid", "Send of 1000000 uint8 to rank 1"});
    }
    seat.meet();
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclTimeout);
  });
}

TEST_P(PointToPointFailures, of_a_receive_that_nobody_sends_come_at_the_deadline_and_name_both_ends) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat, impatient(300 * kSlowdown));
    if (seat.rank == 0) {
      Parcel parcel({.from = 1, .to = 0, .count = 10});
      EXPECT_EQ(parcel.receive(comm), fcclTimeout);
      expect_text(comm, {"rank 0 has waited", "rank 1 (pid", "Recv of 10 uint8 from rank 1"});
    }
    seat.meet();
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclTimeout);
  });
}

TEST_P(PointToPointFailures, of_a_receive_from_any_source_come_at_the_deadline) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat, impatient(300 * kSlowdown));
    if (seat.rank == 0) {
      int source = 0;
      Parcel parcel({.from = 1, .to = 0, .count = 10, .tag = 4});
      EXPECT_EQ(parcel.receive_from_any(comm, &source), fcclTimeout);
      expect_text(comm, {"rank 0 has waited", "for any rank", "Recv of 10 uint8 from any rank with tag 4"});
    }
    seat.meet();
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclTimeout);
  });
}

TEST_P(PointToPointFailures, of_a_stream_are_the_stream_s) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat, impatient(300 * kSlowdown));
    if (seat.rank == 0) {
      const TestStream stream;
      Parcel first({.from = 1, .to = 0, .count = 10}), second({.from = 0, .to = 1, .count = 10});
      EXPECT_TRUE(succeeded(first.receive(comm, stream)));
      EXPECT_TRUE(succeeded(second.send(comm, stream)));
      EXPECT_EQ(fcclStreamSynchronize(stream), fcclTimeout);
      expect_text(comm, {"Recv of 10 uint8 from rank 1"});
    }
    seat.meet();
  });
}

TEST_P(PointToPointFailures, of_a_peer_that_has_left_name_it) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    if (seat.rank == 1) {
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
    }
    seat.meet();
    if (seat.rank == 0) {
      Parcel parcel({.from = 1, .to = 0, .count = 10});
      EXPECT_EQ(parcel.receive(comm), fcclRemoteError);
      expect_text(comm, {"rank 1 (pid", "has finalized or destroyed", "Recv of 10 uint8 from rank 1"});
    }
    seat.meet();
  });
}

TEST_P(PointToPointFailures, of_a_revoked_communicator_end_what_waits) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == 0) {
      Parcel parcel({.from = 0, .to = 1, .count = 1'000'000});
      std::thread watchdog([&] {
        std::this_thread::sleep_for(50ms);
        EXPECT_TRUE(succeeded(fcclCommRevoke(comm, 0)));
      });
      EXPECT_EQ(parcel.send(comm), fcclAborted);
      watchdog.join();
    } else if (seat.rank == 1) {
      int source = 0;
      Parcel parcel({.from = 0, .to = 1, .count = 10, .tag = 9});
      EXPECT_EQ(parcel.receive_from_any(comm, &source), fcclAborted);
    }
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, PointToPointFailures, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

#ifndef FCCL_RANKS_AS_THREADS_ONLY

// Rank 1 dies in the middle of what rank 0 does with it.
class PointToPointDeath : public ::testing::TestWithParam<size_t> {
 protected:
  static void expect_death(const std::function<fcclResult_t(const Seat&, fcclComm_t)>& of_survivor) {
    run_ranks({.as = RanksAs::processes, .ranks = 3, .killed = {1}}, [&](const Seat& seat) {
      const Comm comm(seat);
      if (seat.rank == 1) {
        std::this_thread::sleep_for(50ms);
        seat.board.notes[0] = now_ns();
        kill(getpid(), SIGKILL);
      }
      if (seat.rank == 0) {
        EXPECT_EQ(of_survivor(seat, comm), fcclRemoteError);
        EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
        expect_text(comm, {"rank 1 (pid", "died"});
      }
      if (seat.rank == 2) {
        EXPECT_EQ(fcclBarrier(comm, nullptr), fcclRemoteError);
      }
    });
  }
};

TEST_P(PointToPointDeath, of_whom_a_rank_sends_to_is_named) {
  expect_death([](const Seat&, fcclComm_t comm) {
    fcclResult_t result = fcclSuccess;
    for (int i = 0; result == fcclSuccess; ++i) {
      Parcel parcel({.from = 0, .to = 1, .count = GetParam(), .iteration = i});
      result = parcel.send(comm);
    }
    return result;
  });
}

TEST_P(PointToPointDeath, of_whom_a_rank_receives_from_is_named) {
  expect_death([](const Seat&, fcclComm_t comm) {
    Parcel parcel({.from = 1, .to = 0, .count = GetParam()});
    return parcel.receive(comm);
  });
}

TEST_P(PointToPointDeath, of_one_of_any_sources_is_named) {
  expect_death([](const Seat&, fcclComm_t comm) {
    int source = 0;
    Parcel parcel({.from = 1, .to = 0, .count = GetParam(), .tag = 1});
    return parcel.receive_from_any(comm, &source);
  });
}

INSTANTIATE_TEST_SUITE_P(Of, PointToPointDeath, ::testing::Values(size_t{100}, size_t{5'000'000}),
                         [](const auto& info) { return std::to_string(info.param) + "_bytes"; });

// They exchange until one dies in the middle of a transfer.
TEST(PointToPointDeathAtWork, is_named_and_nothing_wrong_is_believed) {
  run_ranks({.as = RanksAs::processes, .ranks = 2, .killed = {1}}, [](const Seat& seat) {
    const Comm comm(seat);
    std::thread killer;
    if (seat.rank == 1)
      killer = std::thread([] {
        std::this_thread::sleep_for(60ms);
        kill(getpid(), SIGKILL);
      });
    fcclResult_t result = fcclSuccess;
    for (int i = 0; result == fcclSuccess; ++i) {
      Parcel parcel({.from = 1, .to = 0, .count = 3'000'000, .iteration = i});
      result = seat.rank == 1 ? parcel.send(comm) : parcel.receive(comm);
      if (seat.rank == 0 && result == fcclSuccess) {
        ASSERT_EQ(parcel.fault(), "");
      }
    }
    EXPECT_EQ(result, fcclRemoteError);
    expect_text(comm, {"rank 1 (pid", "died"});
    if (killer.joinable()) killer.join();
  });
}

#endif

}  // namespace
}  // namespace fccl::core::testing
