// Ends of a communicator while another thread is inside a call of it: finalize and destroy wait until that is out.
#include <atomic>
#include <chrono>
#include <thread>

#include "processes/size.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// A hang shows soon.
Launch launch_of(const Size& size) {
  return {.as = size.as, .ranks = size.ranks, .limit = std::chrono::seconds(20 * kSlowdown)};
}

// A thread inside fcclBarrier.
class Caller {
 public:
  explicit Caller(fcclComm_t comm)
      : thread_([this, comm] {
          entered_ = true;
          result_ = fcclBarrier(comm, nullptr);
        }) {
    while (!entered_) std::this_thread::yield();
    std::this_thread::sleep_for(100ms);
  }
  ~Caller() {
    if (thread_.joinable()) thread_.join();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  fcclResult_t result() {
    thread_.join();
    return result_;
  }

 private:
  std::atomic<bool> entered_{false};
  fcclResult_t result_ = fcclInProgress;
  std::thread thread_;
};

class Ending : public ::testing::TestWithParam<Size> {};

// Rank 1 comes once rank 0 has had its chance not to wait.
void come_late(fcclComm_t comm) {
  std::this_thread::sleep_for(400ms);
  EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
}

TEST_P(Ending, by_destroy_waits_for_the_call_that_another_thread_is_in) {
  run_ranks(launch_of(GetParam()), [](const Seat& seat) {
    Comm comm(seat);
    seat.meet();
    if (seat.rank != 0) return come_late(comm);
    Caller caller(comm);
    const int64_t begin = now_ns();
    EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
    EXPECT_GE(ms_since(begin), 200);
    EXPECT_EQ(caller.result(), fcclSuccess);
  });
}

TEST_P(Ending, by_finalize_waits_for_the_call_that_another_thread_is_in) {
  run_ranks(launch_of(GetParam()), [](const Seat& seat) {
    const Comm comm(seat);
    seat.meet();
    if (seat.rank != 0) return come_late(comm);
    Caller caller(comm);
    const int64_t begin = now_ns();
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_GE(ms_since(begin), 200);
    EXPECT_EQ(caller.result(), fcclSuccess);
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclInvalidUsage);
  });
}

TEST_P(Ending, by_finalize_of_two_threads_waits_for_the_call_that_a_third_is_in) {
  run_ranks(launch_of(GetParam()), [](const Seat& seat) {
    const Comm comm(seat);
    seat.meet();
    if (seat.rank != 0) return come_late(comm);
    Caller caller(comm);
    std::thread other([&] { EXPECT_TRUE(succeeded(fcclCommFinalize(comm))); });
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    other.join();
    EXPECT_EQ(caller.result(), fcclSuccess);
  });
}

TEST_P(Ending, by_finalize_is_not_kept_waiting_by_one_call_after_the_other) {
  run_ranks(launch_of(GetParam()), [](const Seat& seat) {
    const Comm comm(seat);
    fcclResult_t last = fcclSuccess;
    const auto call_until_failure = [&] {
      while (last == fcclSuccess) last = fcclBarrier(comm, nullptr);
    };
    if (seat.rank != 0) {
      call_until_failure();
      EXPECT_EQ(last, fcclRemoteError) << fcclGetLastError(comm);
      return seat.meet();
    }
    std::thread caller(call_until_failure);
    std::this_thread::sleep_for(100ms);
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    caller.join();
    EXPECT_EQ(last, fcclInvalidUsage);
    // In its process, it lives on.
    seat.meet();
  });
}

TEST_P(Ending, by_destroy_waits_for_a_call_until_that_reaches_its_deadline) {
  run_ranks(launch_of(GetParam()), [](const Seat& seat) {
    fcclConfig_t config = config_of_tests();
    config.timeoutMs = 400;
    Comm comm(seat, config);
    // The others do not come.
    if (seat.rank == 0) {
      Caller caller(comm);
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      EXPECT_EQ(caller.result(), fcclTimeout);
    }
    seat.meet();
  });
}

// For the sanitizers: the handle goes at the moment at which the call comes out.
TEST_P(Ending, by_destroy_frees_nothing_that_a_call_still_returns_through) {
  run_ranks(launch_of(GetParam()), [](const Seat& seat) {
    for (int round = 0; round < 50; ++round) {
      Comm comm(seat);
      auto& through = seat.board.notes[round];
      if (seat.rank != 0) {
        EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
        ++through;
        continue;
      }
      std::thread caller([handle = fcclComm_t{comm}] { EXPECT_EQ(fcclBarrier(handle, nullptr), fcclSuccess); });
      // A thread that passes this loop has seen that the caller is inside.
      while (through == 0) {
      }
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      caller.join();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(As, Ending, ::testing::ValuesIn(sizes(2, 2)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
