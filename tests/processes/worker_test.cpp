// The worker in trouble: host functions that throw or wait, and threads that cannot be had.
#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>

#include "processes/no_threads.h"
#include "processes/size.h"
#include "processes/test_stream.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

void expect_failure_of_stream(fcclHostFunc_t throws, const std::string& said) {
  const TestStream stream;
  bool ran = false;
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, throws, nullptr)));
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, [](void* data) { *static_cast<bool*>(data) = true; }, &ran)));
  EXPECT_EQ(fcclStreamSynchronize(stream), fcclInvalidUsage);
  const std::string text = fcclGetLastError(nullptr);
  EXPECT_NE(text.find(said), std::string::npos) << text;
  EXPECT_TRUE(ran);
  EXPECT_EQ(fcclStreamQuery(stream), fcclInvalidUsage);
}

TEST(HostFunction, that_throws_is_the_failure_of_its_stream) {
  expect_failure_of_stream([](void*) { throw std::runtime_error("the file is gone"); }, "the file is gone");
}

TEST(HostFunction, that_throws_what_is_no_exception_is_the_failure_of_its_stream) {
  expect_failure_of_stream([](void*) { throw 7; }, "host function");
}

TEST(HostFunction, that_others_launch_on_their_stream_runs_before_it_is_freed) {
  struct Chain {
    fcclStream_t stream = nullptr;
    std::atomic<int> ran{0};
    static void run(void* data) {
      auto* chain = static_cast<Chain*>(data);
      if (++chain->ran < 5) {
        EXPECT_TRUE(succeeded(fcclLaunchHostFunc(chain->stream, run, chain)));
      }
    }
  } chain;
  EXPECT_TRUE(succeeded(fcclStreamCreate(&chain.stream)));
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(chain.stream, Chain::run, &chain)));
  EXPECT_TRUE(succeeded(fcclStreamDestroy(chain.stream)));
  EXPECT_EQ(chain.ran.load(), 5);
}

TEST(HostFunction, may_not_make_a_blocking_call) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    struct Tried {
      fcclComm_t comm;
      std::vector<fcclResult_t> results{};
      std::string text{};
    } tried{comm};
    const TestStream stream;
    const auto function = [](void* data) {
      auto& tries = *static_cast<Tried*>(data);
      int value = 1;
      tries.results.push_back(fcclAllReduce(&value, &value, 1, fcclInt32, fcclSum, tries.comm, nullptr));
      tries.text = fcclGetLastError(nullptr);
      tries.results.push_back(fcclSend(&value, 1, fcclInt32, 0, tries.comm, nullptr));
    };
    EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, function, &tried)));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(tried.results, std::vector<fcclResult_t>(2, fcclInvalidUsage));
    EXPECT_NE(tried.text.find("a host function may not"), std::string::npos) << tried.text;
    // The communicator is as good as before.
    int value = seat.rank + 1;
    EXPECT_TRUE(succeeded(fcclAllReduce(&value, &value, 1, fcclInt32, fcclSum, comm, nullptr)));
    EXPECT_EQ(value, 3);
  });
}

TEST(HostFunction, that_throws_leaves_other_streams_alone) {
  const TestStream throwing, other;
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(throwing, [](void*) { throw std::runtime_error("no"); }, nullptr)));
  EXPECT_EQ(fcclStreamSynchronize(throwing), fcclInvalidUsage);
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(other, [](void*) {}, nullptr)));
  EXPECT_TRUE(succeeded(fcclStreamSynchronize(other)));
}

// A host function that keeps the worker until it is let go.
class Held {
 public:
  explicit Held(fcclStream_t stream) : stream_(stream) {
    EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, hold, this)));
    while (!is_inside_) std::this_thread::yield();
  }
  ~Held() {
    may_go_ = true;
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream_)));
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  static void hold(void* data) {
    auto* held = static_cast<Held*>(data);
    held->is_inside_ = true;
    while (!held->may_go_) std::this_thread::yield();
  }

  fcclStream_t stream_;
  std::atomic<bool> is_inside_{false}, may_go_{false};
};

class HostFunctions : public ::testing::TestWithParam<Size> {};

// Else the worker would wait for itself.
TEST_P(HostFunctions, may_not_wait_for_a_collective_behind_one_that_the_worker_serves) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    struct Attempt {
      fcclComm_t comm;
      std::atomic<int> result{-1};
    };
    const Comm comm(seat);
    const TestStream calls, functions;
    Attempt attempt{comm};
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(fcclBarrier(comm, calls)));
      const auto try_barrier = [](void* data) {
        auto* tried = static_cast<Attempt*>(data);
        tried->result = fcclBarrier(tried->comm, nullptr);
      };
      EXPECT_TRUE(succeeded(fcclLaunchHostFunc(functions, try_barrier, &attempt)));
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(functions)));
      EXPECT_EQ(attempt.result.load(), fcclInvalidUsage);
    }
    seat.meet();
    if (seat.rank != 0) {
      EXPECT_TRUE(succeeded(fcclBarrier(comm, calls)));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(calls)));
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  });
}

TEST_P(HostFunctions, that_fail_do_not_pass_for_the_end_of_what_is_behind_them) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, [](void*) { throw std::runtime_error("the file is gone"); }, nullptr)));
    const bool late = seat.rank == 1;
    if (!late) {
      EXPECT_TRUE(succeeded(fcclBarrier(comm, stream)));
      EXPECT_EQ(fcclStreamSynchronizeTo(stream, 1, -1), fcclInvalidUsage);
      EXPECT_EQ(fcclStreamSynchronizeTo(stream, 2, 20), fcclInProgress);
    }
    seat.meet();
    if (late) {
      EXPECT_TRUE(succeeded(fcclBarrier(comm, stream)));
    }
    EXPECT_EQ(fcclStreamSynchronizeTo(stream, 2, -1), fcclInvalidUsage);
  });
}

INSTANTIATE_TEST_SUITE_P(As, HostFunctions, ::testing::ValuesIn(sizes(2, 2)), name_of_size);

// The worker is inside a host function of another stream all the while.
TEST_P(HostFunctions, that_take_long_hold_up_no_stream_that_somebody_waits_for) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream occupied, waited_for;
    std::optional<Held> held;
    if (seat.rank == 0) held.emplace(occupied);
    seat.meet();
    const auto trial = trial_of(fcclCollAllReduce, 50'000, seat);
    EXPECT_TRUE(succeeded(trial->issue(comm, waited_for)));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(waited_for)));
    EXPECT_EQ(trial->fault(), "");
    if (held) {
      EXPECT_EQ(fcclStreamQuery(occupied), fcclInProgress);
    }
    held.reset();
  });
}

// On whatever thread it runs.
TEST(HostFunction, may_not_wait_for_its_stream_on_a_thread_that_serves_it) {
  const TestStream occupied, stream;
  struct Attempt {
    fcclStream_t stream;
    std::atomic<int> result{-1};
  } attempt{stream};
  std::optional<Held> held(occupied);
  const auto wait_for_itself = [](void* data) {
    auto* tried = static_cast<Attempt*>(data);
    tried->result = fcclStreamSynchronizeTo(tried->stream, 1, -1);
  };
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, wait_for_itself, &attempt)));
  EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
  EXPECT_EQ(attempt.result.load(), fcclInvalidUsage);
  held.reset();
}

TEST(Worker, that_cannot_be_started_is_an_error_of_the_first_stream) {
  fcclStream_t stream = nullptr;
  {
    const NoThreads here;
    EXPECT_EQ(fcclStreamCreate(&stream), fcclSystemError);
    EXPECT_EQ(stream, nullptr);
    const std::string text = fcclGetLastError(nullptr);
    EXPECT_NE(text.find("thread"), std::string::npos) << text;
  }
  const TestStream later;
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(later, [](void*) {}, nullptr)));
  EXPECT_TRUE(succeeded(fcclStreamSynchronize(later)));
}

TEST(Worker, ends_with_the_last_stream) {
  // A sanitizer starts a thread of its own beside the first one.
  std::thread([] {}).join();
  const int threads = count_threads();
  for (int i = 0; i < 100; ++i) const TestStream first, second;
  for (int patience = 0; patience < 500 && count_threads() > threads; ++patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(count_threads(), threads);
}

}  // namespace
}  // namespace fccl::core::testing
