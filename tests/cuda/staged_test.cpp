// Calls that run as a whole in host memory: uneven blocks, sends and receives, groups. Some are longer
// than the staging buffer, some empty.
#include <array>
#include <cstring>
#include <numeric>

#include "cuda/cuda_ranks.h"

namespace fccl::core::testing {
namespace {

constexpr fcclColl_t kUneven[] = {fcclCollAllGatherV, fcclCollReduceScatterV, fcclCollAlltoAllV};

class CudaStaged : public ::testing::TestWithParam<const char*> {
 protected:
  const Setting path{"FCCL_CUDA_PATH", GetParam()};
  const Setting buffer{"FCCL_CUDA_BUFFER", "4096"};
};

// The values that a rank sends in its i-th transfer.
std::vector<int32_t> values_of(int rank, int transfer, size_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), rank * 1'000'000 + transfer * 100'000);
  return values;
}

// A buffer of the GPU that the stream fills, late, right before what is issued next.
std::byte* filled_by_stream(CudaSeat& seat, const std::vector<int32_t>& values) {
  std::byte* const buffer = seat.take(values.size() * sizeof(int32_t) + 1);
  seat.gpu().launch(seat.stream(), [buffer, values] {
    if (!values.empty()) std::memcpy(simulated::real(buffer), values.data(), values.size() * sizeof(int32_t));
  });
  return buffer;
}

void expect_good(CudaSeat& seat, fcclComm_t comm) {
  EXPECT_EQ(try_on_gpu({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 100}, seat, comm), "");
}

// The first failure of a call, or of the communicator since.
std::string failure_of(fcclResult_t result, fcclComm_t comm) {
  EXPECT_EQ(result, fcclInvalidUsage);
  return fcclGetLastError(comm);
}

TEST_P(CudaStaged, uneven_blocks_have_the_written_value_and_leave_the_gaps_untouched) {
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    int iteration = 0;
    for (const fcclColl_t collective : kUneven)
      for (const Shares shares : kEveryShares)
        for (const size_t count : {0, 37, 3'001})
          for (const bool is_displaced : {false, true}) {
            ++iteration;
            EXPECT_EQ(try_on_gpu({.collective = collective,
                                  .dtype = iteration % 2 == 0 ? fcclFloat32 : fcclBfloat16,
                                  .count = count,
                                  .in_place = collective != fcclCollAlltoAllV && iteration % 3 == 0,
                                  .iteration = iteration,
                                  .shares = shares,
                                  .is_displaced = is_displaced},
                                 seat, comm),
                      "");
          }
    EXPECT_EQ(try_on_gpu({.collective = fcclCollReduceScatterV,
                          .dtype = fcclFloat32,
                          .count = 2'000,
                          .op = ReduceOp::premul_sum,
                          .iteration = ++iteration},
                         seat, comm, true),
              "");
  });
}

TEST_P(CudaStaged, counts_that_differ_are_an_error_on_every_rank) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const size_t others = seat.rank() == 0 ? 5 : 7;
    const std::array<size_t, 2> counts{others, others}, own{3, 3};
    std::array<size_t, 2> sent = counts, received = counts;
    sent[static_cast<size_t>(seat.rank())] = received[static_cast<size_t>(seat.rank())] = own[0];
    std::byte *const from = seat.take(200), *const to = seat.take(200);
    const std::string text = failure_of(
        fcclAlltoAllV(from, sent.data(), nullptr, to, received.data(), nullptr, fcclFloat32, comm, seat.stream().native), comm);
    for (const char* word : {"AlltoAllV", "5", "7"}) EXPECT_NE(text.find(word), std::string::npos) << text;
    seat.gpu().synchronize(seat.stream());
    seat.meet();
  });
}

TEST_P(CudaStaged, ends_of_a_transfer_that_differ_are_an_error_on_both) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::byte* const memory = seat.take(40'000);
    void* const stream = seat.stream().native;
    const fcclResult_t result = seat.rank() == 0 ? fcclSend(memory, 9'000, fcclInt32, 1, comm, stream)
                                                 : fcclRecv(memory, 9'001, fcclInt32, 0, comm, stream);
    const std::string text = failure_of(result, comm);
    for (const char* word : {"9000", "9001"}) EXPECT_NE(text.find(word), std::string::npos) << text;
    seat.gpu().synchronize(seat.stream());
    seat.meet();
  });
}

TEST_P(CudaStaged, a_transfer_takes_what_the_stream_has_made_and_leaves_it_to_what_follows_there) {
  run_on_gpus({.ranks = 2, .gpus = 2, .options = {.delay_us = 300}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    void* const stream = seat.stream().native;
    for (const size_t count : {0, 1, 333, 5'001}) {
      const auto expected = values_of(0, static_cast<int>(count % 7), count);
      const size_t bytes = count * sizeof(int32_t);
      std::byte *const from = filled_by_stream(seat, expected), *const to = seat.take(bytes + 1);
      std::byte* const after = seat.take(bytes + 1);
      if (seat.rank() == 0) {
        EXPECT_TRUE(succeeded(fcclSend(from, count, fcclInt32, 1, comm, stream)));
        EXPECT_TRUE(succeeded(fcclRecv(to, count, fcclInt32, 1, comm, stream)));
      } else {
        EXPECT_TRUE(succeeded(fcclRecv(to, count, fcclInt32, 0, comm, stream)));
        EXPECT_TRUE(succeeded(fcclSend(to, count, fcclInt32, 0, comm, stream)));
      }
      seat.gpu().launch(seat.stream(), [=] { std::memcpy(simulated::real(after), simulated::real(to), bytes); });
      seat.gpu().synchronize(seat.stream());
      EXPECT_EQ(seat.read(after, count), expected);
    }
  });
}

TEST_P(CudaStaged, tags_and_any_source_choose_among_what_has_come) {
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    void* const stream = seat.stream().native;
    constexpr size_t kCount = 21;
    constexpr size_t kBytes = kCount * sizeof(int32_t);
    if (seat.rank() != 0) {
      for (const int tag : {4, 5})
        EXPECT_TRUE(succeeded(fcclSendTagged(filled_by_stream(seat, values_of(seat.rank(), tag, kCount)), kCount, fcclInt32, 0,
                                             tag, comm, stream)));
    } else {
      std::array<bool, 3> has_come{};
      for (const int tag : {5, 5, 4, 4}) {
        int source = -1;
        std::byte* const to = seat.take(kBytes);
        EXPECT_TRUE(succeeded(fcclRecvTagged(to, kCount, fcclInt32, FCCL_ANY_SOURCE, tag, &source, comm, stream)));
        seat.gpu().synchronize(seat.stream());
        EXPECT_EQ(seat.read(to, kCount), values_of(source, tag, kCount));
        if (tag == 5) has_come[static_cast<size_t>(source)] = true;
      }
      EXPECT_TRUE(has_come[1] && has_come[2]);
    }
    expect_good(seat, comm);
  });
}

TEST_P(CudaStaged, a_group_gives_and_takes_at_once_beside_collectives) {
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    void* const stream = seat.stream().native;
    constexpr size_t kCount = 4'003;
    constexpr size_t kBytes = kCount * sizeof(int32_t);
    const int next = (seat.rank() + 1) % 3, last = (seat.rank() + 2) % 3;
    const std::vector<int32_t> rank_plus_one(kCount, seat.rank() + 1);
    std::byte *const from = filled_by_stream(seat, values_of(seat.rank(), 1, kCount)), *const to = seat.take(kBytes);
    std::byte *const given = filled_by_stream(seat, rank_plus_one), *const sum = seat.take(kBytes);
    std::byte* const gathered = seat.take(3 * kBytes);
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    EXPECT_TRUE(succeeded(fcclSend(from, kCount, fcclInt32, next, comm, stream)));
    EXPECT_TRUE(succeeded(fcclAllReduce(given, sum, kCount, fcclInt32, fcclSum, comm, stream)));
    EXPECT_TRUE(succeeded(fcclRecv(to, kCount, fcclInt32, last, comm, stream)));
    EXPECT_TRUE(succeeded(fcclAllGather(from, gathered, kCount, fcclInt32, comm, stream)));
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
    seat.gpu().synchronize(seat.stream());
    EXPECT_EQ(seat.read(to, kCount), values_of(last, 1, kCount));
    EXPECT_EQ(seat.read(sum, kCount), std::vector<int32_t>(kCount, 6));
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_EQ(seat.read(gathered + static_cast<size_t>(rank) * kBytes, kCount), values_of(rank, 1, kCount));
    expect_good(seat, comm);
  });
}

TEST_P(CudaStaged, a_transfer_between_two_ranks_asks_nothing_of_a_third) {
  run_on_gpus({.ranks = 3, .gpus = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    void* const stream = seat.stream().native;
    std::byte *const from = filled_by_stream(seat, values_of(0, 2, 2'000)), *const to = seat.take(8'000);
    if (seat.rank() == 0) {
      EXPECT_TRUE(succeeded(fcclSend(from, 2'000, fcclInt32, 1, comm, stream)));
    } else if (seat.rank() == 1) {
      EXPECT_TRUE(succeeded(fcclRecv(to, 2'000, fcclInt32, 0, comm, stream)));
      seat.gpu().synchronize(seat.stream());
      EXPECT_EQ(seat.read(to, 2'000), values_of(0, 2, 2'000));
    }
    // The third rank is here all along, and the collective comes behind.
    seat.meet();
    // Waits for the kernel that fills `from` on the rank that sends nothing; the next call takes its memory.
    seat.gpu().synchronize(seat.stream());
    expect_good(seat, comm);
  });
}

TEST_P(CudaStaged, calls_of_either_kind_keep_their_order_on_the_lane) {
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::vector<std::unique_ptr<CudaTrial>> trials;
    for (int i = 0; i < 24; ++i) {
      const Recipe recipe{.collective = i % 3 == 2 ? kUneven[i / 3 % 3] : fcclCollAllReduce,
                          .dtype = fcclInt32,
                          .count = static_cast<size_t>(500 + 97 * i),
                          .iteration = i};
      trials.push_back(std::make_unique<CudaTrial>(recipe, seat));
    }
    for (const auto& trial : trials) EXPECT_TRUE(succeeded(trial->issue(comm)));
    seat.gpu().synchronize(seat.stream());
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
  });
}

TEST_P(CudaStaged, pinned_memory_is_sent_and_received_behind_what_the_stream_does_with_it) {
  run_on_gpus({.ranks = 2, .gpus = 2, .options = {.delay_us = 300}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    for (const size_t count : {333, 100'001}) {
      const auto expected = values_of(0, static_cast<int>(count % 7), count);
      const size_t bytes = count * sizeof(int32_t);
      std::byte* const memory = seat.gpu().allocate(MemoryPlace::pinned_host, bytes);
      if (seat.rank() == 0) {
        seat.gpu().launch(seat.stream(), [=, &expected] { simulated::store(memory, std::as_bytes(std::span(expected))); });
        EXPECT_TRUE(succeeded(fcclSend(memory, count, fcclInt32, 1, comm, seat.stream().native)));
      } else {
        EXPECT_TRUE(succeeded(fcclRecv(memory, count, fcclInt32, 0, comm, seat.stream().native)));
        seat.gpu().synchronize(seat.stream());
        EXPECT_EQ(seat.read(memory, count), expected);
      }
      seat.meet();
    }
  });
}

TEST_P(CudaStaged, a_rank_whose_stream_is_held_keeps_its_peer_until_the_deadline) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    fcclConfig_t config = config_of_cuda_tests();
    config.timeoutMs = 200 * kSlowdown;
    const Comm comm(seat.seat(), config);
    std::byte* const memory = seat.take(64);
    if (seat.rank() == 0) seat.hold();
    const fcclResult_t result = seat.rank() == 0 ? fcclSend(memory, 16, fcclInt32, 1, comm, seat.stream().native)
                                                 : fcclRecv(memory, 16, fcclInt32, 0, comm, seat.stream().native);
    EXPECT_EQ(result, fcclTimeout);
    seat.meet();
    seat.release();
    seat.gpu().synchronize(seat.stream());
    seat.meet();
  });
}

TEST_P(CudaStaged, a_communicator_that_is_made_while_its_user_goes_on_serves_cuda_memory) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    fcclConfig_t config = config_of_cuda_tests();
    config.blocking = 0;
    const fcclUniqueId id = agree_on_id(seat.seat());
    fcclComm_t made = nullptr;
    ASSERT_EQ(fcclCommInitRankConfig(&made, 2, id, seat.rank(), &config), fcclInProgress);
    const Comm comm(made);
    fcclResult_t state = fcclInProgress;
    while (state == fcclInProgress) ASSERT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
    ASSERT_EQ(state, fcclSuccess) << fcclGetLastError(comm);
    expect_good(seat, comm);
  });
}

INSTANTIATE_TEST_SUITE_P(By, CudaStaged, ::testing::ValuesIn(kCudaPaths), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fccl::core::testing
