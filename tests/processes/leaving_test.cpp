// Ends that are nobody's death: a rank that destroys early, a deadline, an abort.
#include <thread>

#include "processes/size.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

class Leaving : public ::testing::TestWithParam<Size> {};

TEST_P(Leaving, while_others_wait_is_an_error_that_names_the_rank) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    if (seat.rank == 1) {
      std::this_thread::sleep_for(30ms);
      seat.board.notes[0] = now_ns();
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      // In its process, it lives on.
      seat.meet();
      return;
    }
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclRemoteError);
    EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("rank 1 (pid"), std::string::npos) << text;
    EXPECT_NE(text.find("destroyed"), std::string::npos) << text;
    seat.meet();
  });
}

TEST_P(Leaving, after_its_last_call_is_no_error) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    for (int round = 0; round < 10; ++round) {
      const Comm comm(seat);
      // The first rank that is ready destroys while others may still be in the call.
      EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    }
  });
}

TEST_P(Leaving, is_no_failure_for_those_who_are_idle) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    if (seat.rank == 1) fcclCommDestroy(comm.release());
    seat.meet();
    if (seat.rank == 1) return;
    fcclResult_t state = fcclInternalError;
    EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
    EXPECT_EQ(state, fcclSuccess);
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
  });
}

INSTANTIATE_TEST_SUITE_P(As, Leaving, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

class Deadlines : public ::testing::TestWithParam<Size> {};

void expect_timeout(const Seat& seat, fcclComm_t comm, size_t count) {
  std::vector<float> values(count);
  EXPECT_TRUE(succeeded(fcclCommSetTimeout(comm, 300)));
  const auto reduce = [&] { return fcclAllReduce(values.data(), values.data(), count, fcclFloat32, fcclSum, comm, nullptr); };
  seat.meet();
  if (seat.rank != 1) {
    const int64_t begin = now_ns();
    EXPECT_EQ(reduce(), fcclTimeout);
    EXPECT_GE(ms_since(begin), 290);
    EXPECT_TRUE(in_time(begin, 1300));
  }
  seat.meet();
  // The late rank gets the same failure with the same text.
  if (seat.rank == 1) {
    EXPECT_EQ(reduce(), fcclTimeout);
  }
  const std::string text = fcclGetLastError(comm);
  EXPECT_NE(text.find("rank 1 (pid"), std::string::npos) << text;
  EXPECT_NE(text.find("AllReduce(sum) of"), std::string::npos) << text;
  EXPECT_NE(text.find("FCCL_TIMEOUT"), std::string::npos) << text;
  seat.board.notes[seat.rank] = static_cast<int64_t>(std::hash<std::string>{}(text));
  seat.meet();
  EXPECT_EQ(seat.board.notes[seat.rank], seat.board.notes[0]) << text;
}

TEST_P(Deadlines, end_a_small_call_by_naming_the_rank_that_did_not_come) {
  run_ranks(GetParam().launch(), [](const Seat& seat) { expect_timeout(seat, Comm(seat), 3); });
}

TEST_P(Deadlines, end_a_large_call_by_naming_the_rank_that_did_not_come) {
  run_ranks(GetParam().launch(), [](const Seat& seat) { expect_timeout(seat, Comm(seat), 1'000'000); });
}

TEST_P(Deadlines, come_from_the_config) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    fcclConfig_t config = config_of_tests();
    config.timeoutMs = 100;
    const Comm comm(seat, config);
    if (seat.rank != 1) {
      EXPECT_EQ(fcclBarrier(comm, nullptr), fcclTimeout);
    }
    seat.meet();
  });
}

TEST_P(Deadlines, end_a_split_of_several_colors_by_naming_the_rank_that_did_not_come) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclCommSetTimeout(comm, 200)));
    if (seat.rank != 1) {
      fcclComm_t part = nullptr;
      const int64_t begin = now_ns();
      EXPECT_EQ(fcclCommSplit(comm, seat.rank, 0, &part, nullptr), fcclTimeout);
      EXPECT_TRUE(in_time(begin, 1200));
      EXPECT_EQ(part, nullptr);
      const std::string text = fcclGetLastError(comm);
      EXPECT_NE(text.find("rank 1 (pid"), std::string::npos) << text;
      EXPECT_NE(text.find("fcclCommSplit"), std::string::npos) << text;
    }
    seat.meet();
  });
}

TEST_P(Deadlines, end_operations_on_streams) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclCommSetTimeout(comm, 200)));
    if (seat.rank != 1) {
      fcclStream_t stream;
      ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
      EXPECT_TRUE(succeeded(fcclBarrier(comm, stream)));
      EXPECT_EQ(fcclStreamSynchronize(stream), fcclTimeout);
      EXPECT_EQ(fcclStreamDestroy(stream), fcclTimeout);
    }
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, Deadlines, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

class Abort : public ::testing::TestWithParam<Size> {};

TEST_P(Abort, from_another_thread_ends_a_blocked_call_on_every_rank) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    const fcclComm_t handle = comm;
    std::thread aborter;
    if (seat.rank == 0) {
      comm.release();
      aborter = std::thread([&] {
        std::this_thread::sleep_for(100ms);
        seat.board.notes[0] = now_ns();
        EXPECT_TRUE(succeeded(fcclCommAbort(handle)));
      });
    }
    // Rank 1 does not come, so that the others are blocked.
    if (seat.rank != 1) {
      EXPECT_EQ(fcclBarrier(handle, nullptr), fcclAborted);
      EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
    }
    if (aborter.joinable()) aborter.join();
    seat.meet();
    if (seat.rank == 1) {
      EXPECT_EQ(fcclBarrier(handle, nullptr), fcclAborted);
    }
    if (seat.rank == 0) return;
    EXPECT_NE(std::string(fcclGetLastError(handle)).find("rank 0 aborted"), std::string::npos) << fcclGetLastError(handle);
  });
}

TEST_P(Abort, ends_operations_on_streams) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    fcclStream_t stream;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    if (seat.rank != 1) {
      EXPECT_TRUE(succeeded(fcclBarrier(comm, stream)));
    }
    seat.meet();
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(fcclCommAbort(comm.release())));
    }
    EXPECT_EQ(fcclStreamDestroy(stream), seat.rank == 1 ? fcclSuccess : fcclAborted);
    seat.meet();
  });
}

TEST_P(Abort, of_an_idle_communicator_fails_the_peers_next_call) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(fcclCommAbort(comm.release())));
    }
    seat.meet();
    if (seat.rank != 0) {
      EXPECT_EQ(fcclBarrier(comm, nullptr), fcclAborted);
    }
  });
}

TEST_P(Abort, ends_a_split_that_waits_for_a_rank) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    const fcclComm_t handle = comm;
    // Rank 1 does not split.
    if (seat.rank == 0) {
      comm.release();
      std::thread aborter([&] {
        std::this_thread::sleep_for(100ms);
        EXPECT_TRUE(succeeded(fcclCommAbort(handle)));
      });
      fcclComm_t part = nullptr;
      EXPECT_EQ(fcclCommSplit(handle, 0, 0, &part, nullptr), fcclAborted);
      EXPECT_EQ(part, nullptr);
      aborter.join();
    }
    seat.meet();
  });
}

TEST_P(Abort, by_revoking_leaves_a_handle_that_only_tells_the_cause) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    std::thread revoker;
    if (seat.rank == 0) {
      revoker = std::thread([&] {
        std::this_thread::sleep_for(50ms);
        EXPECT_TRUE(succeeded(fcclCommRevoke(comm, 0)));
      });
    }
    // Rank 1 comes late, so that the others are blocked.
    if (seat.rank != 1) {
      EXPECT_EQ(fcclBarrier(comm, nullptr), fcclAborted);
    }
    if (revoker.joinable()) revoker.join();
    seat.meet();
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclAborted);
    EXPECT_NE(std::string(fcclGetLastError(comm)).find("rank 0 aborted"), std::string::npos) << fcclGetLastError(comm);
    EXPECT_EQ(fcclCommRevoke(comm, 1), fcclInvalidArgument);
  });
}

INSTANTIATE_TEST_SUITE_P(As, Abort, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
