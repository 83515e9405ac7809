// Calls on CUDA memory that cannot end well: every rank hears of it, and every stream goes on.
#include <atomic>
#include <functional>
#include <thread>

#include "cuda/landed_calls.h"
#include "device_calls/retired_lanes.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr double kInTime = 1000 * kSlowdown;
constexpr int kShort = 400 * kSlowdown;  // ms, a communicator's timeout

class CudaFailures : public ::testing::TestWithParam<const char*> {
 protected:
  static bool bounces() { return std::string(GetParam()) != "blocking"; }
  const Setting path{"FCCL_CUDA_PATH", GetParam()};
  const Setting buffer{"FCCL_CUDA_BUFFER", "4096"};
  const Setting slots{"FCCL_CUDA_LANDING", kSmallSlots};
};

fcclConfig_t config_with_timeout(int timeout_ms) {
  fcclConfig_t config = config_of_cuda_tests();
  config.timeoutMs = timeout_ms;
  return config;
}

Recipe reduce_of(size_t count) { return {.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = count}; }

// Both lanes have their memory, which is made without a hurry.
void warm_up(CudaSeat& seat, fcclComm_t comm) {
  EXPECT_EQ(try_on_gpu(reduce_of(10), seat, comm), "");
  EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 10}, seat, comm), "");
  seat.meet();
}

// The first failure, which comes within a time.
std::string await_failure(fcclComm_t comm, fcclResult_t code, double within_ms) {
  const int64_t begin = now_ns();
  fcclResult_t state = fcclSuccess;
  while (state == fcclSuccess && ms_since(begin) < within_ms) {
    EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(state, code) << fcclGetLastError(comm);
  return fcclGetLastError(comm);
}

// All that is on the stream is through.
void expect_released(CudaSeat& seat, double within_ms = kInTime) {
  const int64_t begin = now_ns();
  seat.gpu().synchronize(seat.stream());
  EXPECT_LT(ms_since(begin), within_ms);
}

TEST_P(CudaFailures, calls_that_differ_differ_in_their_first_sub_call) {
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    warm_up(seat, comm);
    CudaTrial trial(reduce_of(seat.rank() == 0 ? 40'000 : 41'000), seat);
    (void)trial.issue(comm);
    expect_words(await_failure(comm, fcclInvalidUsage, kInTime), {"rank 0", "of 40000 float32", "of 41000 float32"});
    expect_released(seat);
    seat.meet();
  });
}

TEST_P(CudaFailures, a_call_of_the_other_lane_is_one_that_differs) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    warm_up(seat, comm);
    Recipe recipe = reduce_of(1000);
    if (seat.rank() == 1) recipe.collective = fcclCollAllGather;
    CudaTrial trial(recipe, seat);
    (void)trial.issue(comm);
    expect_words(await_failure(comm, fcclInvalidUsage, kInTime), {"AllReduce(sum) of 1000", "AllGather of 1000"});
    expect_released(seat);
    seat.meet();
  });
}

TEST_P(CudaFailures, first_calls_that_differ_show_as_they_are) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    CudaTrial trial(reduce_of(seat.rank() == 0 ? 40 : 41), seat);
    (void)trial.issue(comm);
    expect_words(await_failure(comm, fcclInvalidUsage, kInTime), {"of 40 float32", "of 41 float32"});
    expect_released(seat);
    seat.meet();
  });
}

TEST_P(CudaFailures, a_rank_that_never_issues_is_named_at_the_deadline) {
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_with_timeout(kShort));
    warm_up(seat, comm);
    CudaTrial trial(reduce_of(5000), seat);
    if (seat.rank() != 2) (void)trial.issue(comm);
    expect_words(await_failure(comm, fcclTimeout, kShort + kInTime), {"rank 2", "it has not issued this one"});
    expect_released(seat);
    seat.meet();
  });
}

TEST_P(CudaFailures, a_rank_whose_stream_is_held_is_named_at_the_deadline) {
  run_on_gpus({.ranks = 3, .gpus = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_with_timeout(kShort));
    warm_up(seat, comm);
    if (seat.rank() == 1) seat.hold();
    CudaTrial trial(reduce_of(500), seat);
    (void)trial.issue(comm);
    const std::string text = await_failure(comm, fcclTimeout, kShort + kInTime);
    expect_words(text, {"rank 1"});
    if (bounces()) expect_words(text, {"it has issued this one, but its CUDA stream has not come to it"});
    if (seat.rank() != 1) expect_released(seat);
    seat.meet();
    seat.release();
    expect_released(seat);
  });
}

TEST_P(CudaFailures, a_gpu_that_stops_fails_all_and_keeps_nobody) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    Comm comm(seat.seat(), config_with_timeout(kShort));
    warm_up(seat, comm);
    if (seat.rank() == 1) seat.gpu().stop();
    CudaTrial trial(reduce_of(5000), seat);
    (void)trial.issue(comm);
    expect_words(await_failure(comm, fcclTimeout, kShort + kInTime), {"rank 1"});
    if (seat.rank() == 0) expect_released(seat);
    const int64_t begin = now_ns();
    EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
    EXPECT_TRUE(in_time(begin, 2500));
    seat.meet();
    seat.gpu().go_on();
    expect_released(seat);
  });
}

TEST_P(CudaFailures, an_abort_ends_a_call_that_its_stream_has_not_come_to) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    Comm comm(seat.seat(), config_of_cuda_tests());
    warm_up(seat, comm);
    seat.hold();
    CudaTrial trial(reduce_of(5000), seat);
    std::thread issuing([&] {
      simulated::set_current_device(seat.rank());
      (void)trial.issue(comm);
    });
    if (bounces()) issuing.join();
    std::this_thread::sleep_for(20ms);
    const int64_t begin = now_ns();
    EXPECT_TRUE(succeeded(fcclCommRevoke(comm, 0)));
    if (!bounces()) issuing.join();
    EXPECT_TRUE(succeeded(fcclCommAbort(comm.release())));
    EXPECT_TRUE(in_time(begin, 1000));
    seat.release();
    expect_released(seat);
    seat.meet();
  });
}

TEST_P(CudaFailures, the_calls_before_a_failure_stay_right) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    warm_up(seat, comm);
    CudaTrial right(reduce_of(5000), seat), differs(reduce_of(seat.rank() == 0 ? 7000 : 7001), seat);
    EXPECT_TRUE(succeeded(right.issue(comm)));
    (void)differs.issue(comm);
    (void)await_failure(comm, fcclInvalidUsage, kInTime);
    expect_released(seat);
    EXPECT_EQ(right.fault(), "");
    EXPECT_EQ(differs.issue(comm), fcclInvalidUsage);
    expect_released(seat);
    seat.meet();
  });
}

// The first, the second ... function of the GPU that a run calls returns an error, until there are no more. The run counts the
// ranks that have failed: both, or none.
void fail_each_function(const std::function<void(uint64_t after, std::atomic<int>& failures)>& run) {
  bool failed = true;
  for (uint64_t after = 1; failed; ++after) {
    std::atomic<int> failures{0};
    run(after, failures);
    EXPECT_NE(failures, 1) << after;
    failed = failures > 0;
    EXPECT_TRUE(failed || after > 10) << "so few functions were called";
    ASSERT_LT(after, 100U);
  }
}

// In a call that has several sub-calls.
TEST_P(CudaFailures, an_error_of_any_function_of_the_gpu_is_every_ranks_failure) {
  fail_each_function([&](uint64_t after, std::atomic<int>& failures) {
    run_on_gpus({.ranks = 2, .gpus = 2}, [&](CudaSeat& seat) {
      const Comm comm(seat.seat(), config_with_timeout(4 * kShort));
      warm_up(seat, comm);
      CudaTrial trial(reduce_of(2000), seat);
      if (seat.rank() == 0) seat.gpu().fail_call_after(after);
      (void)trial.issue(comm);
      expect_released(seat);
      seat.meet();
      fcclResult_t state = fcclSuccess;
      EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
      if (state == fcclSuccess) {
        EXPECT_EQ(trial.fault(), "");
      } else {
        EXPECT_NE(std::string(fcclGetLastError(comm)).find("rank 0 could not run AllReduce"), std::string::npos)
            << fcclGetLastError(comm);
        ++failures;
      }
      seat.meet();
    });
  });
}

TEST_P(CudaFailures, an_error_of_any_function_of_the_gpu_in_a_group_of_transfers_is_every_ranks_failure) {
  fail_each_function([&](uint64_t after, std::atomic<int>& failures) {
    run_on_gpus({.ranks = 2, .gpus = 2}, [&](CudaSeat& seat) {
      const Comm comm(seat.seat(), config_with_timeout(4 * kShort));
      std::byte *const from = seat.take(8000), *const to = seat.take(8000);
      void* const stream = seat.stream().native;
      if (seat.rank() == 0) seat.gpu().fail_call_after(after);
      (void)fcclGroupStart();
      (void)fcclSend(from, 2000, fcclInt32, 1 - seat.rank(), comm, stream);
      (void)fcclRecv(to, 2000, fcclInt32, 1 - seat.rank(), comm, stream);
      (void)fcclGroupEnd();
      expect_released(seat);
      seat.meet();
      fcclResult_t state = fcclSuccess;
      EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
      if (state != fcclSuccess) {
        expect_words(fcclGetLastError(comm), {"rank 0 could not run"});
        ++failures;
      }
      seat.meet();
    });
  });
}

TEST(CudaBounce, is_destroyed_without_waiting_for_a_gpu_that_has_not_come) {
  const Setting path("FCCL_CUDA_PATH", "bounce"), buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    Comm comm(seat.seat(), config_of_cuda_tests());
    warm_up(seat, comm);
    CudaTrial trial(reduce_of(5000), seat);
    if (seat.rank() == 0) {
      seat.hold();
      EXPECT_TRUE(succeeded(trial.issue(comm)));
      seat.meet();
      const int64_t begin = now_ns();
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      EXPECT_TRUE(in_time(begin, 1000));
      EXPECT_EQ(retired_lanes().count(), 3U);
      seat.meet();
    } else {
      EXPECT_TRUE(succeeded(trial.issue(comm)));
      seat.meet();
      expect_words(await_failure(comm, fcclAborted, kInTime), {"rank 0 destroyed its communicator before its GPU"});
      expect_released(seat);
      // The ranks are threads of one process, which counts the lanes of both.
      seat.meet();
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
    }
    seat.meet();
    seat.release();
    expect_released(seat);
    seat.meet();
    const Comm next(seat.seat(), config_of_cuda_tests());
    seat.meet();
    EXPECT_EQ(retired_lanes().count(), 0U);
  });
}

TEST(CudaBounce, is_finalized_when_the_gpu_is_through_or_at_the_deadline) {
  const Setting path("FCCL_CUDA_PATH", "bounce"), buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_with_timeout(kShort));
    warm_up(seat, comm);
    seat.hold();
    CudaTrial trial(reduce_of(50), seat);
    EXPECT_TRUE(succeeded(trial.issue(comm)));
    EXPECT_EQ(fcclCommFinalize(comm), fcclTimeout);
    expect_words(fcclGetLastError(comm), {"for its own GPU", "fcclCommFinalize", "FCCL_TIMEOUT"});
    seat.release();
    expect_released(seat);
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(By, CudaFailures, ::testing::ValuesIn(kCudaPaths), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fccl::core::testing
