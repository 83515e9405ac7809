// Sends, receives and groups of CUDA memory: the waits on the caller's thread, and orders that are safe all the same.
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "cuda/cuda_ranks.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr size_t kShort = 1'000;  // int32, within FCCL_MAILBOX_BYTES
constexpr size_t kLong = 30'001;
constexpr size_t kPeerHasCome = 0;  // a note of the whiteboard

class CudaWaiting : public ::testing::TestWithParam<const char*> {
 protected:
  static OnGpus on(int ranks) { return {.ranks = ranks, .gpus = ranks, .options = {.delay_us = 100}}; }

 private:
  const Setting path_{"FCCL_CUDA_PATH", GetParam()};
  const Setting buffer_{"FCCL_CUDA_BUFFER", "4096"};
};

// Elements in memory of the GPU, that can be sent, received and looked at.
class Block {
 public:
  Block(CudaSeat& seat, int of_rank, int transfer, size_t count)
      : seat_(seat), at_(seat.take(count * sizeof(int32_t))), values_(count) {
    std::iota(values_.begin(), values_.end(), of_rank * 10'000'000 + transfer * 1'000'000);
  }
  // Its values are there from now on.
  Block& fill() {
    seat_.gpu().write(at_, std::as_bytes(std::span(values_)));
    return *this;
  }
  fcclResult_t send(int peer, fcclComm_t comm, Queue stream) const {
    return fcclSend(at_, values_.size(), fcclInt32, peer, comm, stream.native);
  }
  fcclResult_t receive(int peer, fcclComm_t comm, Queue stream) const {
    return fcclRecv(at_, values_.size(), fcclInt32, peer, comm, stream.native);
  }
  // When the stream has come to its end.
  bool has_come() const {
    std::vector<int32_t> now(values_.size());
    seat_.gpu().read(at_, std::as_writable_bytes(std::span(now)));
    return now == values_;
  }

 private:
  CudaSeat& seat_;
  std::byte* at_;
  std::vector<int32_t> values_;
};

TEST_P(CudaWaiting, a_short_send_returns_before_its_receive_is_called) {
  run_on_gpus(on(2), [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    Block block(seat, 0, 1, kShort);
    if (seat.rank() == 0) {
      EXPECT_TRUE(succeeded(block.fill().send(1, comm, seat.stream())));
    }
    seat.meet();
    if (seat.rank() == 1) {
      EXPECT_TRUE(succeeded(block.receive(0, comm, seat.stream())));
      seat.gpu().synchronize(seat.stream());
      EXPECT_TRUE(block.has_come());
    }
    seat.meet();
  });
}

TEST_P(CudaWaiting, a_long_send_returns_when_its_receive_has_been_called) {
  run_on_gpus(on(2), [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    auto& has_come = seat.seat().board.notes[kPeerHasCome];
    Block block(seat, 0, 1, kLong);
    if (seat.rank() == 0) {
      EXPECT_TRUE(succeeded(block.fill().send(1, comm, seat.stream())));
      EXPECT_EQ(has_come, 1);
    } else {
      std::this_thread::sleep_for(50ms);
      has_come = 1;
      EXPECT_TRUE(succeeded(block.receive(0, comm, seat.stream())));
      seat.gpu().synchronize(seat.stream());
      EXPECT_TRUE(block.has_come());
    }
    seat.meet();
  });
}

TEST_P(CudaWaiting, a_receive_and_a_group_return_when_the_peers_have_come) {
  run_on_gpus(on(2), [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    auto& has_come = seat.seat().board.notes[kPeerHasCome];
    const int peer = 1 - seat.rank();
    for (const bool in_group : {false, true}) {
      Block mine(seat, seat.rank(), 1, kShort), theirs(seat, peer, 1, kShort);
      mine.fill();
      if (seat.rank() == 1) {
        std::this_thread::sleep_for(50ms);
        has_come = has_come + 1;
      }
      if (in_group) {
        EXPECT_TRUE(succeeded(fcclGroupStart()));
        EXPECT_TRUE(succeeded(mine.send(peer, comm, seat.stream())));
        EXPECT_TRUE(succeeded(theirs.receive(peer, comm, seat.stream())));
        EXPECT_TRUE(succeeded(fcclGroupEnd()));
      } else if (seat.rank() == 0) {
        EXPECT_TRUE(succeeded(theirs.receive(peer, comm, seat.stream())));
      } else {
        EXPECT_TRUE(succeeded(mine.send(peer, comm, seat.stream())));
      }
      if (seat.rank() == 0) {
        EXPECT_EQ(has_come, in_group ? 2 : 1);
      }
      seat.gpu().synchronize(seat.stream());
      if (in_group || seat.rank() == 0) {
        EXPECT_TRUE(theirs.has_come());
      }
      seat.meet();
    }
  });
}

// Forth and back between neighbours, as pipelines do; each rank alone knows where it stands.
TEST_P(CudaWaiting, an_order_in_which_each_send_meets_its_receive_is_safe_on_any_streams) {
  run_on_gpus(on(3), [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const Queue here = seat.stream(), there = seat.gpu().make_user_queue();
    const bool is_first = seat.rank() == 0, is_last = seat.rank() == 2;
    constexpr int kBatches = 4;
    std::vector<Block> received;
    received.reserve(2 * kBatches);
    for (int batch = 0; batch < kBatches; ++batch) {
      if (!is_first) {
        received.emplace_back(seat, seat.rank() - 1, batch, kLong);
        EXPECT_TRUE(succeeded(received.back().receive(seat.rank() - 1, comm, here)));
      }
      if (!is_last) {
        EXPECT_TRUE(succeeded(Block(seat, seat.rank(), batch, kLong).fill().send(seat.rank() + 1, comm, there)));
      }
      if (!is_last) {
        received.emplace_back(seat, seat.rank() + 1, batch, kLong);
        EXPECT_TRUE(succeeded(received.back().receive(seat.rank() + 1, comm, here)));
      }
      if (!is_first) {
        EXPECT_TRUE(succeeded(Block(seat, seat.rank(), batch, kLong).fill().send(seat.rank() - 1, comm, there)));
      }
    }
    seat.gpu().synchronize(here);
    seat.gpu().synchronize(there);
    for (const Block& block : received) EXPECT_TRUE(block.has_come());
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 100}, seat, comm), "");
    seat.meet();
  });
}

TEST_P(CudaWaiting, two_long_sends_that_cross_end_at_the_deadline_and_name_both_ends) {
  run_on_gpus(on(2), [](CudaSeat& seat) {
    fcclConfig_t config = config_of_cuda_tests();
    config.timeoutMs = 200 * kSlowdown;
    const Comm comm(seat.seat(), config);
    const int peer = 1 - seat.rank();
    EXPECT_EQ(Block(seat, seat.rank(), 1, kLong).fill().send(peer, comm, seat.stream()), fcclTimeout);
    const std::string text = fcclGetLastError(comm);
    for (const char* word : {"rank 0", "rank 1", "Send of 30001 int32"})
      EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
    seat.gpu().synchronize(seat.stream());
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(By, CudaWaiting, ::testing::ValuesIn(kCudaPaths), [](const auto& info) { return info.param; });

// The blocking path cannot do this: there the AllReduce waits for the rank that waits for its receive.
TEST(CudaWaitingBounced, a_collective_that_is_out_keeps_no_send_and_no_receive) {
  const Setting path("FCCL_CUDA_PATH", "bounce"), buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const Recipe recipe{.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 500};
    EXPECT_EQ(try_on_gpu(recipe, seat, comm), "");
    CudaTrial sum(recipe, seat);
    Block block(seat, 0, 1, kLong);
    const Queue other = seat.gpu().make_user_queue();
    if (seat.rank() == 0) {
      EXPECT_TRUE(succeeded(block.fill().send(1, comm, other)));
      EXPECT_TRUE(succeeded(sum.issue(comm)));
    } else {
      EXPECT_TRUE(succeeded(sum.issue(comm)));
      EXPECT_TRUE(succeeded(block.receive(0, comm, other)));
      seat.gpu().synchronize(other);
      EXPECT_TRUE(block.has_come());
    }
    seat.gpu().synchronize(seat.stream());
    EXPECT_EQ(sum.fault(), "");
    seat.meet();
  });
}

}  // namespace
}  // namespace fccl::core::testing
