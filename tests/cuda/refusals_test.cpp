// A communicator of CUDA memory refuses some calls and takes others; a call that it refuses starts nothing.
#include <bit>
#include <cstring>

#include "cuda/cuda_ranks.h"
#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

constexpr size_t kCount = 16;
constexpr size_t kBytes = kCount * sizeof(float);

class CudaRefusals : public ::testing::TestWithParam<const char*> {
 protected:
  const Setting path{"FCCL_CUDA_PATH", GetParam()};
  const Setting buffer{"FCCL_CUDA_BUFFER", "65536"};
};

fcclResult_t all_reduce(void* send, void* recv, fcclComm_t comm, void* stream) {
  return fcclAllReduce(send, recv, kCount, fcclFloat32, fcclSum, comm, stream);
}

void expect_refused(fcclResult_t result, fcclResult_t code, const std::vector<std::string>& words) {
  EXPECT_EQ(result, code);
  const std::string text = fcclGetLastError(nullptr);
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

// The ranks are in step, so nothing that was refused has counted.
void expect_good(CudaSeat& seat, fcclComm_t comm) {
  EXPECT_EQ(try_on_gpu({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 100}, seat, comm), "");
}

TEST_P(CudaRefusals, name_memory_of_the_wrong_place_and_the_gpu) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::vector<float> pageable(kCount);
    std::byte* const here = seat.take(kBytes);
    seat.seat().board.notes[seat.rank()] = reinterpret_cast<int64_t>(here);
    seat.meet();
    auto* const there = std::bit_cast<std::byte*>(seat.seat().board.notes[1 - seat.rank()].load());
    void* const stream = seat.stream().native;
    const std::string gpu = "cuda:" + std::to_string(seat.rank());
    if (seat.rank() == 0) {
      expect_refused(all_reduce(pageable.data(), here, comm, stream), fcclInvalidArgument,
                     {"sendbuff", "pageable host memory", gpu, "fcclMemoryCpu"});
      expect_refused(all_reduce(here, pageable.data(), comm, stream), fcclInvalidArgument,
                     {"recvbuff", "pageable host memory"});
      expect_refused(all_reduce(there, here, comm, stream), fcclInvalidArgument, {"sendbuff", "memory of another GPU", gpu});
    }
    expect_good(seat, comm);
    seat.meet();
  });
}

TEST_P(CudaRefusals, do_not_concern_managed_and_pinned_memory) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    for (const MemoryPlace place : {MemoryPlace::managed, MemoryPlace::pinned_host}) {
      std::byte* const buffer = seat.gpu().allocate(place, kBytes);
      const std::vector<float> mine(kCount, static_cast<float>(seat.rank() + 1));
      seat.gpu().write(buffer, std::as_bytes(std::span(mine)));
      EXPECT_TRUE(succeeded(all_reduce(buffer, buffer, comm, seat.stream().native)));
      seat.gpu().synchronize(seat.stream());
      std::vector<float> sum(kCount);
      seat.gpu().read(buffer, std::as_writable_bytes(std::span(sum)));
      EXPECT_EQ(sum, std::vector<float>(kCount, 3));
    }
  });
}

// The driver copies between two host places while its caller waits inside it, where no deadline reaches.
TEST_P(CudaRefusals, do_not_concern_pinned_memory_whose_stream_is_held_until_the_deadline) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    fcclConfig_t config = config_of_cuda_tests();
    const Comm comm(seat.seat(), config);
    expect_good(seat, comm);
    ASSERT_TRUE(succeeded(fcclCommSetTimeout(comm, 300 * kSlowdown)));
    std::byte* const buffer = seat.gpu().allocate(MemoryPlace::pinned_host, kBytes);
    if (seat.rank() == 0) seat.hold();
    EXPECT_EQ(all_reduce(buffer, buffer, comm, seat.stream().native), fcclTimeout);
    seat.meet();
    seat.release();
    seat.gpu().synchronize(seat.stream());
    seat.meet();
  });
}

// The rank with pinned memory waits on its own thread, the other one takes the path that it was asked to.
TEST_P(CudaRefusals, do_not_concern_ranks_of_which_one_has_pinned_memory) {
  run_on_gpus({.ranks = 2, .gpus = 2, .options = {.delay_us = 200}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    constexpr size_t kLong = 100'000;  // several sub-calls
    using enum MemoryPlace;
    const MemoryPlace places[] = {this_device, pinned_host};
    for (int round = 0; round < 8; ++round) {
      const bool mine = round % 2 == seat.rank();
      std::byte* const from = seat.gpu().allocate(places[mine && round % 4 < 2], kLong * sizeof(float));
      std::byte* const to = seat.gpu().allocate(places[mine && round < 4], kLong * sizeof(float));
      std::vector<float> sent(kLong), sum(kLong), expected(kLong);
      for (size_t i = 0; i < kLong; ++i) {
        sent[i] = static_cast<float>(i % 1000 + static_cast<size_t>(seat.rank() + 2 * round));
        expected[i] = static_cast<float>(2 * (i % 1000) + static_cast<size_t>(1 + 4 * round));
      }
      seat.gpu().launch(seat.stream(), [=, &sent] { std::memcpy(simulated::real(from), sent.data(), kLong * sizeof(float)); });
      EXPECT_TRUE(succeeded(fcclAllReduce(from, to, kLong, fcclFloat32, fcclSum, comm, seat.stream().native)));
      seat.gpu().synchronize(seat.stream());
      seat.gpu().read(to, std::as_writable_bytes(std::span(sum)));
      EXPECT_EQ(sum, expected) << "round " << round;
      expect_good(seat, comm);
    }
  });
}

TEST_P(CudaRefusals, name_a_host_stream_and_one_of_another_gpu) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const TestStream host_stream;
    std::byte* const here = seat.take(kBytes);
    expect_refused(all_reduce(here, here, comm, host_stream), fcclInvalidArgument, {"host stream", "cudaStream_t"});
    seat.seat().board.notes[seat.rank()] = reinterpret_cast<int64_t>(seat.stream().native);
    seat.meet();
    auto* const theirs = std::bit_cast<void*>(seat.seat().board.notes[1 - seat.rank()].load());
    expect_refused(all_reduce(here, here, comm, theirs), fcclInvalidArgument, {"another GPU"});
    expect_good(seat, comm);
    seat.meet();
  });
}

TEST_P(CudaRefusals, name_the_buffer_of_a_transfer_and_of_uneven_blocks_in_the_wrong_place) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::vector<float> pageable(2 * kCount);
    std::byte* const here = seat.take(kBytes);
    void* const stream = seat.stream().native;
    const size_t counts[] = {kCount, kCount};
    expect_refused(fcclAllGatherV(here, kCount, pageable.data(), counts, nullptr, fcclFloat32, comm, stream),
                   fcclInvalidArgument, {"fcclAllGatherV", "recvbuff", "pageable host memory"});
    expect_refused(fcclSend(pageable.data(), kCount, fcclFloat32, 1 - seat.rank(), comm, stream), fcclInvalidArgument,
                   {"fcclSend", "sendbuff", "pageable host memory"});
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    EXPECT_TRUE(succeeded(fcclRecv(pageable.data(), kCount, fcclFloat32, 1 - seat.rank(), comm, stream)));
    expect_refused(fcclGroupEnd(), fcclInvalidArgument, {"recvbuff", "pageable host memory"});
    expect_good(seat, comm);
  });
}

TEST_P(CudaRefusals, leave_a_capture_as_it_was) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::byte* const here = seat.take(kBytes);
    seat.gpu().begin_capture(seat.stream());
    expect_refused(all_reduce(here, here, comm, seat.stream().native), fcclInvalidUsage, {"CUDA graph"});
    seat.gpu().end_capture(seat.stream());
    expect_good(seat, comm);
  });
}

TEST_P(CudaRefusals, do_not_concern_the_default_stream) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::byte* const here = seat.take(kBytes);
    const std::vector<float> mine(kCount, 1);
    seat.gpu().write(here, std::as_bytes(std::span(mine)));
    EXPECT_TRUE(succeeded(all_reduce(here, here, comm, nullptr)));
    seat.gpu().synchronize({nullptr});
    std::vector<float> sum(kCount);
    seat.gpu().read(here, std::as_writable_bytes(std::span(sum)));
    EXPECT_EQ(sum, std::vector<float>(kCount, 2));
  });
}

TEST_P(CudaRefusals, name_a_stream_that_a_communicator_of_cpu_memory_cannot_have) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    fcclConfig_t config = config_of_tests();
    config.memoryKind = fcclMemoryCpu;
    const Comm comm(seat.seat(), config);
    std::vector<float> values(kCount, 1);
    // Nobody looks behind it.
    void* const nonsense = std::bit_cast<void*>(uintptr_t{16});
    for (void* stream : {seat.stream().native, nonsense})
      expect_refused(all_reduce(values.data(), values.data(), comm, stream), fcclInvalidArgument,
                     {"not a host stream", "fcclStreamCreate", "fcclMemoryCuda"});
    EXPECT_TRUE(succeeded(all_reduce(values.data(), values.data(), comm, nullptr)));
    EXPECT_EQ(values.front(), 2);
    int device = 0;
    EXPECT_EQ(fcclCommCuDevice(comm, &device), fcclInvalidUsage);
  });
}

TEST_P(CudaRefusals, end_init_on_all_ranks_if_they_differ_in_the_kind_of_memory) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    fcclConfig_t config = config_of_tests();
    config.memoryKind = seat.rank() == 0 ? fcclMemoryCuda : fcclMemoryCpu;
    fcclComm_t comm = nullptr;
    const fcclUniqueId id = agree_on_id(seat.seat());
    expect_refused(fcclCommInitRankConfig(&comm, 2, id, seat.rank(), &config), fcclInvalidUsage,
                   {"memoryKind=fcclMemoryCuda", "memoryKind=fcclMemoryCpu"});
    seat.meet();
  });
}

TEST_P(CudaRefusals, do_not_concern_a_kind_that_is_left_open) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm of_gpu(seat.seat());
    int device = -1;
    EXPECT_TRUE(succeeded(fcclCommCuDevice(of_gpu, &device)));
    EXPECT_EQ(device, 0);
    expect_good(seat, of_gpu);
    seat.meet();
    simulated::set_current_device(-1);
    const Comm of_host(seat.seat());
    EXPECT_EQ(fcclCommCuDevice(of_host, &device), fcclInvalidUsage);
  });
}

TEST_P(CudaRefusals, name_a_factor_in_memory_that_the_gpu_does_not_have) {
  run_on_gpus({.ranks = 1}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    float factor = 2;
    fcclRedOp_t op;
    expect_refused(fcclRedOpCreatePreMulSum(&op, &factor, fcclFloat32, fcclScalarDevice, comm), fcclInvalidArgument,
                   {"scalar", "pageable host memory"});
  });
}

TEST_P(CudaRefusals, name_settings_that_the_gpu_cannot_have) {
  const Setting bounce("FCCL_CUDA_PATH", "bounce");
  run_on_gpus({.ranks = 2, .options = {.waits_for_words = false}}, [](CudaSeat& seat) {
    fcclComm_t comm = nullptr;
    fcclConfig_t config = config_of_cuda_tests();
    const fcclUniqueId id = agree_on_id(seat.seat());
    expect_refused(fcclCommInitRankConfig(&comm, 2, id, seat.rank(), &config), fcclInvalidUsage, {"FCCL_CUDA_PATH=bounce"});
    seat.meet();
  });
}

TEST_P(CudaRefusals, do_not_concern_a_gpu_without_words_if_the_path_is_left_open) {
  const Setting either("FCCL_CUDA_PATH", "auto");
  run_on_gpus({.ranks = 2, .options = {.waits_for_words = false}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    expect_good(seat, comm);
  });
}

INSTANTIATE_TEST_SUITE_P(By, CudaRefusals, ::testing::ValuesIn(kCudaPaths), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fccl::core::testing
