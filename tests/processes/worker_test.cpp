// The worker in trouble: host functions that throw or wait, and threads that cannot be had.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "processes/no_threads.h"
#include "processes/size.h"
#include "processes/test_stream.h"
#include "processes/trial.h"

namespace fccl::testing {
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

TEST(HostFunction, that_throws_leaves_other_streams_alone) {
  const TestStream throwing, other;
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(throwing, [](void*) { throw std::runtime_error("no"); }, nullptr)));
  EXPECT_EQ(fcclStreamSynchronize(throwing), fcclInvalidUsage);
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(other, [](void*) {}, nullptr)));
  EXPECT_TRUE(succeeded(fcclStreamSynchronize(other)));
}

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

INSTANTIATE_TEST_SUITE_P(As, HostFunctions, ::testing::ValuesIn(sizes(2, 2)), name_of_size);

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
}  // namespace fccl::testing
