// Failures between hosts that are nobody's death: calls that differ, ranks that leave or stay away, aborts, settings.
#include <cstdlib>
#include <thread>

#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// The rank on which the calls of the others differ.
class HostMismatch : public ::testing::TestWithParam<std::tuple<OnHosts, int, size_t>> {
  const Setting costs_{"FCCL_COSTS", kDearMessages};
};

TEST_P(HostMismatch, shows_both_calls_on_every_rank) {
  const auto& [hosts, odd, count] = GetParam();
  run_ranks(hosts.launch(), [odd = odd, count = count](const Seat& seat) {
    const Comm comm(seat);
    const Recipe common{.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = count};
    const Recipe other{.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = count + 1};
    Trial trial(seat.rank == odd ? other : common, seat.rank, seat.ranks);
    seat.meet();
    const int64_t begin = now_ns();
    EXPECT_EQ(trial.issue(comm), fcclInvalidUsage);
    EXPECT_TRUE(in_time(begin, 1000));
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find(text_of(common)), std::string::npos) << text;
    EXPECT_NE(text.find(text_of(other)), std::string::npos) << text;
    EXPECT_NE(text.find("rank " + std::to_string(odd)), std::string::npos) << text;
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclInvalidUsage);
    seat.meet();
  });
}

std::string name_of_mismatch(const ::testing::TestParamInfo<HostMismatch::ParamType>& info) {
  const auto& [hosts, odd, count] = info.param;
  return std::string(hosts.name) + "_on_rank_" + std::to_string(odd) + (count > 1000 ? "_of_a_large_call" : "");
}

INSTANTIATE_TEST_SUITE_P(Of, HostMismatch,
                         ::testing::Combine(::testing::Values(kThreeAndOne), ::testing::Values(0, 2, 3),
                                            ::testing::Values(10, 800'000)),
                         name_of_mismatch);

INSTANTIATE_TEST_SUITE_P(OfMany, HostMismatch,
                         ::testing::Combine(::testing::Values(kFiveHosts), ::testing::Values(1, 3),
                                            ::testing::Values(10, 800'000)),
                         name_of_mismatch);

INSTANTIATE_TEST_SUITE_P(Long, HostMismatch,
                         ::testing::Combine(::testing::Values(kTwoAndTwo, kInTurn), ::testing::Values(0, 2, 3),
                                            ::testing::Values(10, 800'000)),
                         name_of_mismatch);

class HostLeaving : public ::testing::TestWithParam<OnHosts> {
  const Setting costs_{"FCCL_COSTS", kDearMessages};
};

// The last rank calls on the other lane.
TEST_P(HostLeaving, of_the_common_way_to_the_other_lane_shows_both_calls) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const Recipe gather{.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 30};
    const Recipe reduction{.collective = fcclCollReduceScatter, .dtype = fcclFloat32, .count = 30};
    Trial trial(seat.rank == seat.ranks - 1 ? reduction : gather, seat.rank, seat.ranks);
    ASSERT_TRUE(succeeded(fcclCommSetTimeout(comm, 5000)));
    seat.meet();
    const int64_t begin = now_ns();
    EXPECT_EQ(trial.issue(comm), fcclInvalidUsage);
    EXPECT_TRUE(in_time(begin, 1000));
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find(text_of(gather)), std::string::npos) << text;
    EXPECT_NE(text.find(text_of(reduction)), std::string::npos) << text;
    seat.meet();
  });
}

TEST_P(HostLeaving, while_others_wait_is_an_error_that_names_the_rank) {
  for (const int leaver : {0, GetParam().ranks() - 1})
    run_ranks(GetParam().launch(), [leaver](const Seat& seat) {
      Comm comm(seat);
      if (seat.rank == leaver) {
        std::this_thread::sleep_for(30ms);
        seat.board.notes[0] = now_ns();
        EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      } else {
        const fcclResult_t result = fcclBarrier(comm, nullptr);
        EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
        expect_failure(comm, result, fcclRemoteError, {leaver});
        EXPECT_NE(std::string(fcclGetLastError(comm)).find("destroyed"), std::string::npos) << fcclGetLastError(comm);
      }
      seat.meet();
    });
}

// The first rank that is ready leaves while others may still be in the call.
TEST_P(HostLeaving, after_the_last_call_is_no_error) {
  for (const size_t count : {1, 300'000})
    for (int round = 0; round < 3; ++round)
      run_ranks(GetParam().launch(), [count](const Seat& seat) {
        Comm comm(seat);
        EXPECT_TRUE(succeeded(reduce(comm, count)));
      });
}

// News pass through rank 0, whose process has ended, too: who waits for a rank that has failed hears nothing of that.
TEST(LeftHub, is_named_by_every_rank_that_calls_once_more) {
  const Setting costs("FCCL_COSTS", kDearMessages);
  run_ranks(kFiveHosts.launch(), [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    if (kFiveHosts.host_of[seat.rank] == 0) return;
    std::this_thread::sleep_for(300ms);
    const int64_t begin = now_ns();
    const fcclResult_t result = fcclBarrier(comm, nullptr);
    EXPECT_TRUE(in_time(begin, 2000)) << fcclGetLastError(comm);
    expect_failure(comm, result, fcclRemoteError, {0, 1});
  });
}

fcclComm_t volatile undestroyed;

TEST_P(HostLeaving, by_exit_after_the_last_call_is_no_error) {
  for (const size_t count : {1, 300'000})
    for (int round = 0; round < 3; ++round)
      run_ranks(GetParam().launch(), [count](const Seat& seat) {
        undestroyed = Comm(seat).release();
        EXPECT_TRUE(succeeded(reduce(undestroyed, count)));
        std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
      });
}

TEST_P(HostLeaving, of_one_host_does_not_hold_up_destroying_on_it) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    EXPECT_TRUE(succeeded(reduce(comm, 100'000)));
    if (seat.rank == 0) {
      const int64_t begin = now_ns();
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      EXPECT_TRUE(in_time(begin, 500));
    }
    // Others compute meanwhile, and neither notice nor mind.
    seat.meet();
    fcclResult_t state = fcclInternalError;
    if (seat.rank == 0) return;
    EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
    EXPECT_EQ(state, fcclSuccess);
  });
}

TEST_P(HostLeaving, late_does_not_stall_who_needs_nothing_more_of_it) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const bool sleeper = seat.rank == seat.ranks - 1;
    for (int round = 0; round < 2; ++round) {
      seat.meet();
      const int64_t begin = now_ns();
      EXPECT_TRUE(succeeded(reduce(comm, 1'000'000)));
      if (sleeper)
        std::this_thread::sleep_for(1s * kSlowdown);
      else
        EXPECT_TRUE(in_time(begin, 900));
    }
    seat.meet();
  });
}

// The one that does not come: the last rank, on a host of its own or not.
TEST_P(HostLeaving, a_call_out_ends_it_at_the_deadline_and_names_the_rank) {
  for (const size_t count : {3, 1'000'000})
    run_ranks(GetParam().launch(), [count](const Seat& seat) {
      const Comm comm(seat);
      EXPECT_TRUE(succeeded(fcclCommSetTimeout(comm, 400)));
      const int missing = seat.ranks - 1;
      seat.meet();
      if (seat.rank != missing) {
        const int64_t begin = now_ns();
        const fcclResult_t result = reduce(comm, count);
        EXPECT_TRUE(in_time(begin, 1400));
        expect_failure(comm, result, fcclTimeout, {missing});
      }
      seat.meet();
      // The late rank gets the same failure, which may still be on its way.
      if (seat.rank == missing) {
        await_failure(comm, now_ns(), kSecond);
        expect_failure(comm, reduce(comm, count), fcclTimeout, {missing});
      }
      seat.meet();
    });
}

// Rank 0 waits for rank 2, which waits for rank 3, which does not come; each on a host of its own.
TEST(HostDeadline, between_hosts_names_the_last_in_line) {
  run_ranks(kTwoAndOneAndOne.launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const auto timeout = [](int milliseconds) { return static_cast<int>(milliseconds * kSlowdown); };
    EXPECT_TRUE(succeeded(fcclCommSetTimeout(comm, timeout(seat.rank == 0 ? 1000 : 1600))));
    std::vector<std::byte> buffer(100);
    seat.meet();
    if (seat.rank == 0 || seat.rank == 2) {
      const int awaited = seat.rank == 0 ? 2 : 3;
      EXPECT_EQ(fcclRecv(buffer.data(), buffer.size(), fcclUint8, awaited, comm, nullptr), fcclTimeout);
      const std::string text = fcclGetLastError(comm);
      EXPECT_NE(text.find("rank 0 has waited"), std::string::npos) << text;
      EXPECT_NE(text.find("for " + name_of_rank(2)), std::string::npos) << text;
      EXPECT_NE(text.find("which waits for " + name_of_rank(3)), std::string::npos) << text;
    }
    seat.meet();
  });
}

TEST_P(HostLeaving, by_abort_ends_blocked_calls_on_every_host) {
  for (const int aborter : {0, GetParam().ranks() - 1})
    run_ranks(GetParam().launch(), [aborter](const Seat& seat) {
      Comm comm(seat);
      if (seat.rank == aborter) {
        std::this_thread::sleep_for(50ms);
        seat.board.notes[0] = now_ns();
        EXPECT_TRUE(succeeded(fcclCommAbort(comm.release())));
      } else {
        EXPECT_EQ(fcclBarrier(comm, nullptr), fcclAborted);
        EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
        const std::string text = fcclGetLastError(comm);
        EXPECT_NE(text.find("rank " + std::to_string(aborter) + " aborted"), std::string::npos) << text;
      }
      seat.meet();
    });
}

TEST_P(HostLeaving, by_revoking_from_another_thread_ends_blocked_calls_on_every_host) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    const int revoker = seat.ranks - 1;
    std::thread thread;
    if (seat.rank == revoker)
      thread = std::thread([&] {
        std::this_thread::sleep_for(50ms);
        seat.board.notes[0] = now_ns();
        EXPECT_TRUE(succeeded(fcclCommRevoke(comm, 0)));
      });
    // Rank 0 comes late, so that the others are blocked.
    if (seat.rank != 0) {
      EXPECT_EQ(fcclBarrier(comm, nullptr), fcclAborted);
      EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
    }
    if (thread.joinable()) thread.join();
    seat.meet();
    if (seat.rank == 0) std::this_thread::sleep_for(100ms);
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclAborted);
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(Of, HostLeaving, ::testing::Values(kThreeAndOne, kFiveHosts), name_of_hosts);
INSTANTIATE_TEST_SUITE_P(Long, HostLeaving, ::testing::Values(kTwoAndOneAndOne), name_of_hosts);

void live_and_leave_nothing(const Seat& seat, int lives) {
  const auto live = [&] {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(reduce(comm, 10)));
    seat.meet();
  };
  // The thread of rank 0 that serves an id ends a moment after the last rank has joined.
  const auto rest = [&] {
    seat.meet();
    for (int i = 0; i < 1000 && count_threads() > 1; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(count_threads(), 1);
  };
  live();
  rest();
  const int descriptors = count_descriptors();
  for (int i = 0; i < lives; ++i) live();
  rest();
  EXPECT_EQ(count_descriptors(), descriptors);
}

TEST(HostLives, leave_no_descriptors_or_threads) {
  run_ranks(kThreeAndOne.launch(), [](const Seat& seat) { live_and_leave_nothing(seat, 5); });
}

TEST(LongHostLives, leave_no_descriptors_or_threads) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) { live_and_leave_nothing(seat, 200); });
}

TEST(HostCreation, names_a_setting_that_differs_between_hosts) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const Setting differs("FCCL_WIRE_DTYPE", seat.rank < 2 ? "call" : "float32");
    expect_no_communicator(seat, id, fcclInvalidUsage, {"FCCL_WIRE_DTYPE"});
  });
}

TEST(HostCreation, refuses_a_list_of_nics_that_names_none) {
  run_ranks(kThreeAndOne.launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const Setting nics("FCCL_NICS", ",,");
    expect_no_communicator(seat, id, fcclInvalidUsage, {"FCCL_NICS=,,", "names no NIC"});
  });
}

TEST(HostCreation, names_a_provider_that_is_not_there_on_every_rank) {
  run_ranks(kThreeAndOne.launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const Setting efa("FCCL_TRANSPORT", "efa");
    expect_no_communicator(seat, id, fcclSystemError, {"efa", "rank "});
  });
}

TEST(HostCreation, refuses_the_name_of_no_plan_and_says_which_there_are) {
  run_ranks(kThreeAndOne.launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const Setting algorithm("FCCL_ALGORITHM", "pairwsie");
    expect_no_communicator(seat, id, fcclInvalidUsage, {"FCCL_ALGORITHM=pairwsie", "pairwise", "tree"});
  });
}

// The one rank that fails.
class HostCreationWithout : public ::testing::TestWithParam<int> {};

TEST_P(HostCreationWithout, a_network_interface_of_one_rank_fails_at_once_and_names_it_on_every_rank) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const Setting nic("FCCL_NICS", seat.rank == GetParam() ? "nosuch0" : "");
    expect_no_communicator(seat, id, fcclSystemError, {"nosuch0", name_of_rank(GetParam())});
  });
}

TEST_P(HostCreationWithout, a_sensible_setting_of_one_rank_fails_at_once_and_names_it_on_every_rank) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const bool fails = seat.rank == GetParam();
    const Setting slots("FCCL_SLOT_BYTES", fails ? "7" : "");
    expect_no_communicator(seat, id, fcclInvalidUsage, {"FCCL_SLOT_BYTES", fails ? "7" : name_of_rank(GetParam())});
  });
}

TEST_P(HostCreationWithout, a_sensible_name_of_its_host_fails_at_once_and_names_it_on_every_rank) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const bool fails = seat.rank == GetParam();
    const Setting host("FCCL_HOST_ID", fails ? std::string(300, 'x') : "host" + std::to_string(seat.rank / 2));
    expect_no_communicator(seat, id, fcclInvalidUsage, {"FCCL_HOST_ID", fails ? "more than" : name_of_rank(GetParam())});
  });
}

INSTANTIATE_TEST_SUITE_P(Rank, HostCreationWithout, ::testing::Values(0, 2, 3),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace fccl::core::testing
