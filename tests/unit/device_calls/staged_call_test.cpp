// Tests of which bytes of an operation on GPU memory go to the host and back.
#include "device_calls/staged_call.h"

#include <gtest/gtest.h>

#include <array>

namespace fccl::core {
namespace {

constexpr int kRanks = 3;

// Addresses on a GPU, which nobody may touch here.
// NOLINTNEXTLINE(performance-no-int-to-ptr): no object has these addresses.
std::byte* on_gpu(size_t at) { return reinterpret_cast<std::byte*>(uintptr_t{1} << 40) + at; }

class StagedCallTest : public ::testing::Test {
 protected:
  void stage(const CallOrTransfer& operation, const OnDevice& on_device = {}, int rank = 1) {
    staged = std::move(StagedCall::make(operation, on_device, rank, kRanks, flag).value());
  }
  static void expect_piece(const StagedCall::Piece& piece, const std::byte* device, size_t bytes) {
    EXPECT_EQ(piece.device, device);
    EXPECT_EQ(piece.bytes, bytes);
  }
  const Call& on_host() const { return std::get<Call>(staged->on_host()); }

  std::atomic<bool> flag{false};
  std::unique_ptr<StagedCall> staged;
};

TEST_F(StagedCallTest, of_an_all_gather_brings_one_block_in_and_takes_that_of_every_rank_out) {
  stage(Call{{fcclCollAllGather, fcclFloat32, ReduceOp::sum, -1, 10}, on_gpu(0), on_gpu(1000)});
  ASSERT_EQ(staged->in().size(), 1U);
  expect_piece(staged->in()[0], on_gpu(0), 40);
  ASSERT_EQ(staged->out().size(), 1U);
  expect_piece(staged->out()[0], on_gpu(1000), 120);
}

TEST_F(StagedCallTest, runs_between_the_host_s_copies_which_do_not_overlap) {
  stage(Call{{fcclCollAllReduce, fcclInt8, ReduceOp::sum, -1, 100}, on_gpu(0), on_gpu(0)});
  EXPECT_EQ(on_host().send, staged->in()[0].host);
  EXPECT_EQ(on_host().recv, staged->out()[0].host);
  EXPECT_GE(staged->out()[0].host, staged->in()[0].host + 100);
}

TEST_F(StagedCallTest, of_a_rank_without_results_takes_nothing_out) {
  stage(Call{{fcclCollReduce, fcclInt8, ReduceOp::sum, 0, 100}, on_gpu(0), nullptr});
  EXPECT_EQ(staged->in().size(), 1U);
  EXPECT_TRUE(staged->out().empty());
  EXPECT_EQ(on_host().recv, nullptr);
}

TEST_F(StagedCallTest, of_a_widened_sum_takes_out_results_of_the_wider_type) {
  stage(Call{{.collective = fcclCollAllReduce, .dtype = fcclBfloat16, .count = 10, .widens = true}, on_gpu(0), on_gpu(100)});
  expect_piece(staged->in()[0], on_gpu(0), 20);
  expect_piece(staged->out()[0], on_gpu(100), 40);
}

TEST_F(StagedCallTest, brings_in_a_factor_that_lies_on_the_gpu) {
  stage(Call{{fcclCollAllReduce, fcclFloat64, ReduceOp::premul_sum, -1, 1}, on_gpu(0), on_gpu(8)}, {nullptr, on_gpu(64)});
  ASSERT_EQ(staged->in().size(), 2U);
  expect_piece(staged->in()[1], on_gpu(64), 8);
}

TEST_F(StagedCallTest, packs_blocks_of_uneven_counts_and_leaves_out_empty_ones) {
  UnevenBlocks blocks;
  blocks.input.set(4);
  const std::array<ByteRange, kRanks> ranges{ByteRange{100, 8}, ByteRange{0, 0}, ByteRange{50, 4}};
  blocks.output.set(ranges);
  Call call{{fcclCollAllGatherV, fcclInt8, ReduceOp::sum, -1, 12}, on_gpu(0), on_gpu(1000)};
  call.uneven = &blocks;
  stage(call);
  ASSERT_EQ(staged->out().size(), 2U);
  expect_piece(staged->out()[0], on_gpu(1100), 8);
  expect_piece(staged->out()[1], on_gpu(1050), 4);
  EXPECT_EQ(staged->out()[1].host, staged->out()[0].host + 8);
  EXPECT_EQ(on_host().output(kRanks).offset(2), 8U);
}

TEST_F(StagedCallTest, of_a_receive_takes_its_bytes_out_and_brings_none_in) {
  stage(TransferEnd{.direction = Direction::receive, .peer = 0, .envelope = {kUntagged, fcclInt32, 3}, .target = on_gpu(16)});
  EXPECT_TRUE(staged->in().empty());
  ASSERT_EQ(staged->out().size(), 1U);
  expect_piece(staged->out()[0], on_gpu(16), 12);
  EXPECT_EQ(std::get<TransferEnd>(staged->on_host()).target, staged->out()[0].host);
}

TEST_F(StagedCallTest, is_a_call_of_its_thread_until_it_is_destroyed) {
  stage(Call{{fcclCollBarrier, fcclInt8, ReduceOp::sum, -1, 0}});
  EXPECT_TRUE(flag);
  staged.reset();
  EXPECT_FALSE(flag);
}

TEST_F(StagedCallTest, that_no_memory_holds_is_an_error_that_describes_it) {
  const Call call{{fcclCollAllReduce, fcclInt8, ReduceOp::sum, -1, SIZE_MAX / 8}, on_gpu(0), on_gpu(0)};
  const auto made = StagedCall::make(call, {}, 1, kRanks, flag);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, fcclSystemError);
  EXPECT_NE(made.error().message.find("staging AllReduce(sum) of "), std::string::npos) << made.error().message;
  EXPECT_FALSE(flag);
}

}  // namespace
}  // namespace fccl::core
