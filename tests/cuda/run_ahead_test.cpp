// How far a host runs ahead of its GPU: a loop without an end never fills a queue.
#include <mutex>

#include "cuda/landed_calls.h"

namespace fccl::core::testing {
namespace {

// Knows the queues that the library has made on it.
class WatchedGpu : public simulated::SimulatedGpu {
 public:
  using SimulatedGpu::SimulatedGpu;
  Result<Queue> make_queue() override {
    auto made = SimulatedGpu::make_queue();
    const std::lock_guard lock(mutex_);
    if (made) queues_.push_back(*made);
    return made;
  }
  std::vector<Queue> queues() {
    const std::lock_guard lock(mutex_);
    return queues_;
  }

 private:
  std::mutex mutex_;
  std::vector<Queue> queues_;
};

void expect_within(const std::shared_ptr<WatchedGpu>& gpu, size_t budget) {
  EXPECT_FALSE(gpu->queues().empty());
  for (const Queue queue : gpu->queues()) EXPECT_LE(gpu->most_outstanding(queue), budget);
}

void run_calls(CudaSeat& seat, fcclComm_t comm, int calls, size_t count) {
  const size_t bytes = count * sizeof(int32_t);
  std::byte* const buffer = seat.take(bytes);
  const std::vector<int32_t> ones(count, 1);
  seat.gpu().write(buffer, std::as_bytes(std::span(ones)));
  for (int i = 0; i < calls; ++i) {
    const fcclResult_t result =
        fcclAllReduce(buffer, buffer, count, fcclInt32, i % 8 == 0 ? fcclSum : fcclMax, comm, seat.stream().native);
    ASSERT_TRUE(succeeded(result)) << i;
  }
  seat.gpu().synchronize(seat.stream());
  int32_t sum = 1;
  for (int i = 0; i < calls; i += 8)
    sum = static_cast<int32_t>(static_cast<uint32_t>(sum) * static_cast<uint32_t>(seat.ranks()));
  std::vector<int32_t> result(count);
  seat.gpu().read(buffer, std::as_writable_bytes(std::span(result)));
  EXPECT_EQ(result, std::vector<int32_t>(count, sum));
}

TEST(CudaRunAhead, a_thousand_calls_without_synchronisation_stay_within_the_budget_of_the_queue) {
  const Setting path("FCCL_CUDA_PATH", "bounce"), buffer("FCCL_CUDA_BUFFER", "4096"), entries("FCCL_CUDA_QUEUE", "48");
  simulated::uninstall_all();
  // A queue that were full would keep every rank from calling.
  const auto gpu = std::make_shared<WatchedGpu>(simulated::GpuOptions{.connections = 32, .delay_us = 5});
  simulated::install(gpu);
  run_ranks({.as = RanksAs::threads, .ranks = 3}, [&](const Seat& seat) {
    simulated::set_current_device(0);
    CudaSeat own(seat, gpu);
    const Comm comm(seat, config_of_cuda_tests());
    run_calls(own, comm, 1000, 10);
    seat.meet();
  });
  expect_within(gpu, 48);
}

TEST(CudaRunAhead, a_call_of_more_entries_than_a_queue_takes_is_enqueued_in_portions) {
  const Setting path("FCCL_CUDA_PATH", "bounce"), buffer("FCCL_CUDA_BUFFER", "4096"), entries("FCCL_CUDA_QUEUE", "32");
  simulated::uninstall_all();
  const auto gpu = std::make_shared<WatchedGpu>(simulated::GpuOptions{.queue_slots = 40, .connections = 32, .delay_us = 5});
  simulated::install(gpu);
  run_ranks({.as = RanksAs::threads, .ranks = 2}, [&](const Seat& seat) {
    simulated::set_current_device(0);
    CudaSeat own(seat, gpu);
    const Comm comm(seat, config_of_cuda_tests());
    run_calls(own, comm, 3, 100'000);
    seat.meet();
  });
  expect_within(gpu, 32);
}

// What is on both queues counts as one.
TEST(CudaRunAhead, a_sum_of_more_entries_than_its_queues_take_is_enqueued_in_portions) {
  const Setting path("FCCL_CUDA_PATH", "peer"), slots("FCCL_CUDA_LANDING", kSmallSlots), entries("FCCL_CUDA_QUEUE", "32");
  simulated::uninstall_all();
  const auto gpu = std::make_shared<WatchedGpu>(simulated::GpuOptions{.queue_slots = 40, .connections = 32, .delay_us = 5});
  simulated::install(gpu);
  run_ranks({.as = RanksAs::threads, .ranks = 3}, [&](const Seat& seat) {
    simulated::set_current_device(0);
    CudaSeat own(seat, gpu);
    const Comm comm(seat, config_of_cuda_tests());
    constexpr fcclColl_t kSums[] = {fcclCollReduceScatter, fcclCollAllReduce};
    for (const fcclColl_t collective : kSums)
      EXPECT_EQ(try_on_gpu({.collective = collective, .dtype = fcclFloat32, .count = 30'000}, own, comm), "");
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    for (const fcclColl_t collective : kSums) EXPECT_EQ(calls_by("peer", comm, collective), 1U);
  });
  expect_within(gpu, 32);
}

TEST(CudaRunAhead, a_queue_without_room_is_waited_for_until_the_deadline) {
  const Setting path("FCCL_CUDA_PATH", "bounce"), buffer("FCCL_CUDA_BUFFER", "4096"), entries("FCCL_CUDA_QUEUE", "32");
  run_on_gpus({.ranks = 1}, [](CudaSeat& seat) {
    fcclConfig_t config = config_of_cuda_tests();
    config.timeoutMs = 300;
    const Comm comm(seat.seat(), config);
    std::byte* const here = seat.take(64);
    const auto call = [&] { return fcclAllReduce(here, here, 16, fcclFloat32, fcclSum, comm, seat.stream().native); };
    EXPECT_TRUE(succeeded(call()));
    seat.gpu().synchronize(seat.stream());
    seat.hold();
    fcclResult_t result = fcclSuccess;
    for (int i = 0; i < 40 && result == fcclSuccess; ++i) result = call();
    EXPECT_EQ(result, fcclTimeout);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("for its own GPU"), std::string::npos) << text;
    EXPECT_NE(text.find("has room"), std::string::npos) << text;
    seat.release();
    seat.gpu().synchronize(seat.stream());
  });
}

}  // namespace
}  // namespace fccl::core::testing
