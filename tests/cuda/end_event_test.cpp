// Calls that end by an event of the user's: their stream runs on, and they come one after the other.
#include <numeric>
#include <vector>

#include "cuda/cuda_ranks.h"

namespace fccl::core::testing {
namespace {

constexpr size_t kElements = 3'001;

class CudaEndEvent : public ::testing::TestWithParam<const char*> {
 private:
  const Setting path_{"FCCL_CUDA_PATH", GetParam()};
  const Setting buffer_{"FCCL_CUDA_BUFFER", "4096"};
};

std::vector<int32_t> values_in(int rank, int iteration) {
  std::vector<int32_t> values(kElements);
  std::iota(values.begin(), values.end(), rank * 1'000'000 + iteration * 10'000);
  return values;
}

std::byte* filled(CudaSeat& seat, const std::vector<int32_t>& values) {
  std::byte* const buffer = seat.take(values.size() * sizeof(int32_t));
  seat.gpu().write(buffer, std::as_bytes(std::span(values)));
  return buffer;
}

void await(CudaSeat& seat, Queue stream, Mark end) {
  const Device::Use use(seat.gpu());
  ASSERT_TRUE(seat.gpu().await(stream, end).has_value());
}

// The blocks of both ranks, one behind the other.
std::vector<int32_t> both(const std::vector<int32_t>& first, const std::vector<int32_t>& second) {
  std::vector<int32_t> all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

TEST_P(CudaEndEvent, comes_when_the_result_is_there) {
  run_on_gpus({.options = {.delay_us = 100}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const Mark end = seat.gpu().make_user_mark();
    const Queue other = seat.gpu().make_user_queue();
    ASSERT_TRUE(succeeded(fcclCommSetEndEvent(comm, end.native)));
    for (int i = 0; i < 10; ++i) {
      const std::byte* const mine = filled(seat, values_in(seat.rank(), i));
      std::byte* const all = seat.take(2 * kElements * sizeof(int32_t));
      ASSERT_TRUE(succeeded(fcclAllGather(mine, all, kElements, fcclInt32, comm, seat.stream().native)));
      await(seat, other, end);
      seat.gpu().synchronize(other);
      EXPECT_EQ(seat.read(all, 2 * kElements), both(values_in(0, i), values_in(1, i)));
      seat.meet();
      seat.reset();
    }
  });
}

TEST_P(CudaEndEvent, of_a_send_comes_when_what_was_received_is_there) {
  run_on_gpus({.options = {.delay_us = 100}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const Mark end = seat.gpu().make_user_mark();
    ASSERT_TRUE(succeeded(fcclCommSetEndEvent(comm, end.native)));
    const std::vector<int32_t> sent = values_in(0, 1);
    std::byte* const buffer = seat.rank() == 0 ? filled(seat, sent) : seat.take(kElements * sizeof(int32_t));
    ASSERT_TRUE(succeeded(seat.rank() == 0 ? fcclSend(buffer, kElements, fcclInt32, 1, comm, seat.stream().native)
                                           : fcclRecv(buffer, kElements, fcclInt32, 0, comm, seat.stream().native)));
    await(seat, seat.stream(), end);
    seat.gpu().synchronize(seat.stream());
    EXPECT_EQ(seat.read(buffer, kElements), sent);
    seat.meet();
  });
}

TEST_P(CudaEndEvent, keeps_calls_of_different_collectives_in_their_order) {
  run_on_gpus({.options = {.delay_us = 100}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const Mark end = seat.gpu().make_user_mark();
    ASSERT_TRUE(succeeded(fcclCommSetEndEvent(comm, end.native)));
    for (int i = 0; i < 20; ++i) {
      std::byte* const mine = filled(seat, values_in(seat.rank(), i));
      std::byte* const all = seat.take(2 * kElements * sizeof(int32_t));
      ASSERT_TRUE(succeeded(fcclAllReduce(mine, mine, kElements, fcclInt32, fcclMax, comm, seat.stream().native)));
      ASSERT_TRUE(succeeded(fcclAllGather(mine, all, kElements, fcclInt32, comm, seat.stream().native)));
      ASSERT_TRUE(succeeded(fcclBroadcast(all, mine, kElements, fcclInt32, 1, comm, seat.stream().native)));
      await(seat, seat.stream(), end);
      seat.gpu().synchronize(seat.stream());
      EXPECT_EQ(seat.read(all, 2 * kElements), both(values_in(1, i), values_in(1, i))) << i;
      EXPECT_EQ(seat.read(mine, kElements), values_in(1, i)) << i;
      seat.meet();
      seat.reset();
    }
  });
}

TEST_P(CudaEndEvent, leaves_calls_after_null_to_their_streams) {
  run_on_gpus({.options = {.delay_us = 100}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const Mark end = seat.gpu().make_user_mark();
    ASSERT_TRUE(succeeded(fcclCommSetEndEvent(comm, end.native)));
    EXPECT_EQ(fcclBarrier(comm, seat.stream().native), fcclSuccess);
    ASSERT_TRUE(succeeded(fcclCommSetEndEvent(comm, nullptr)));
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = kElements}, seat, comm), "");
  });
}

INSTANTIATE_TEST_SUITE_P(By, CudaEndEvent, ::testing::ValuesIn(kCudaPaths), [](const auto& info) { return info.param; });

TEST(CudaEndEventOfBounce, lets_the_stream_of_its_call_run_on) {
  const Setting path("FCCL_CUDA_PATH", "bounce");
  run_on_gpus({}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const Mark end = seat.gpu().make_user_mark();
    ASSERT_TRUE(succeeded(fcclBarrier(comm, seat.stream().native)));  // sets up the lane
    seat.gpu().synchronize(seat.stream());
    ASSERT_TRUE(succeeded(fcclCommSetEndEvent(comm, end.native)));
    if (seat.rank() == 1) seat.meet();
    ASSERT_TRUE(succeeded(fcclBarrier(comm, seat.stream().native)));
    // The peer comes only after this.
    seat.gpu().synchronize(seat.stream());
    if (seat.rank() == 0) seat.meet();
    await(seat, seat.stream(), end);
    seat.gpu().synchronize(seat.stream());
  });
}

}  // namespace
}  // namespace fccl::core::testing
