// Calls that are wrong on their face: refused with a reason, on this rank alone, and the communicator stays good.
#include <array>
#include <cstring>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

class Refusals : public ::testing::TestWithParam<Size> {
 protected:
  // Every rank makes the wrong call; then all make a right one.
  static void expect_refused(fcclResult_t code, const std::string& reason,
                             const std::function<fcclResult_t(fcclComm_t)>& call) {
    run_ranks(GetParam().launch(), [&](const Seat& seat) {
      const Comm comm(seat);
      EXPECT_EQ(call(comm), code);
      EXPECT_NE(std::string(fcclGetLastError(nullptr)).find(reason), std::string::npos) << fcclGetLastError(nullptr);
      EXPECT_STREQ(fcclGetLastError(comm), "");
      // Only this rank is wrong: its peers must not notice.
      if (seat.rank == 0) (void)call(comm);
      EXPECT_EQ(
          try_collective({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 100}, seat.rank, seat.ranks, comm),
          "");
      fcclResult_t state = fcclInternalError;
      EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
      EXPECT_EQ(state, fcclSuccess);
    });
  }
};

float values[64];

TEST_P(Refusals, of_a_null_input) {
  expect_refused(fcclInvalidArgument, "sendbuff",
                 [](fcclComm_t comm) { return fcclAllReduce(nullptr, values, 3, fcclFloat32, fcclSum, comm, nullptr); });
}

TEST_P(Refusals, of_a_null_output) {
  expect_refused(fcclInvalidArgument, "recvbuff",
                 [](fcclComm_t comm) { return fcclAllGather(values, nullptr, 3, fcclFloat32, comm, nullptr); });
}

TEST_P(Refusals, of_a_value_that_is_no_type) {
  expect_refused(fcclInvalidArgument, "datatype",
                 [](fcclComm_t comm) { return fcclAllGather(values, values, 1, fcclNumTypes, comm, nullptr); });
}

TEST_P(Refusals, of_a_root_beyond_the_last_rank) {
  expect_refused(fcclInvalidArgument, "root", [](fcclComm_t comm) {
    int ranks = 0;
    fcclCommCount(comm, &ranks);
    return fcclBroadcast(values, values, 1, fcclFloat32, ranks, comm, nullptr);
  });
}

TEST_P(Refusals, of_a_root_below_zero) {
  expect_refused(fcclInvalidArgument, "root",
                 [](fcclComm_t comm) { return fcclReduce(values, values, 1, fcclFloat32, fcclSum, -1, comm, nullptr); });
}

TEST_P(Refusals, of_an_operator_that_was_never_made) {
  expect_refused(fcclInvalidArgument, "operator", [](fcclComm_t comm) {
    return fcclAllReduce(values, values, 1, fcclFloat32, static_cast<fcclRedOp_t>(fcclNumOps + 3), comm, nullptr);
  });
}

TEST_P(Refusals, of_an_operator_made_for_another_type) {
  expect_refused(fcclInvalidArgument, "operator", [](fcclComm_t comm) {
    double factor = 2;
    fcclRedOp_t op;
    EXPECT_TRUE(succeeded(fcclRedOpCreatePreMulSum(&op, &factor, fcclFloat64, fcclScalarHostImmediate, comm)));
    const fcclResult_t result = fcclAllReduce(values, values, 1, fcclFloat32, op, comm, nullptr);
    const std::string text = fcclGetLastError(nullptr);
    EXPECT_TRUE(succeeded(fcclRedOpDestroy(op, comm)));
    EXPECT_EQ(text, fcclGetLastError(nullptr));
    return result;
  });
}

TEST_P(Refusals, of_a_count_that_no_memory_holds) {
  expect_refused(fcclInvalidArgument, "count",
                 [](fcclComm_t comm) { return fcclAllGather(values, values, SIZE_MAX / 4, fcclFloat32, comm, nullptr); });
}

TEST_P(Refusals, of_an_average_of_truth_values) {
  expect_refused(fcclInvalidArgument, "avg of bool has no meaning",
                 [](fcclComm_t comm) { return fcclAllReduce(values, values, 1, fcclBool, fcclAvg, comm, nullptr); });
}

TEST_P(Refusals, of_the_bits_of_floats) {
  expect_refused(fcclInvalidArgument, "bxor of float32 has no meaning: band, bor and bxor are of integers and of bool",
                 [](fcclComm_t comm) { return fcclAllReduce(values, values, 1, fcclFloat32, fcclBxor, comm, nullptr); });
}

TEST_P(Refusals, of_a_factor_for_truth_values) {
  expect_refused(fcclInvalidArgument, "premul_sum of bool has no meaning", [](fcclComm_t comm) {
    bool factor = true;
    fcclRedOp_t op;
    return fcclRedOpCreatePreMulSum(&op, &factor, fcclBool, fcclScalarHostImmediate, comm);
  });
}

TEST_P(Refusals, of_a_send_to_a_rank_that_there_is_not) {
  expect_refused(fcclInvalidArgument, "peer is 64",
                 [](fcclComm_t comm) { return fcclSend(values, 1, fcclFloat32, 64, comm, nullptr); });
}

TEST_P(Refusals, of_a_send_to_any_rank) {
  expect_refused(fcclInvalidArgument, "peer is -1",
                 [](fcclComm_t comm) { return fcclSendTagged(values, 1, fcclFloat32, FCCL_ANY_SOURCE, 0, comm, nullptr); });
}

TEST_P(Refusals, of_a_receive_from_any_rank_without_a_tag) {
  expect_refused(fcclInvalidArgument, "peer is -1",
                 [](fcclComm_t comm) { return fcclRecv(values, 1, fcclFloat32, FCCL_ANY_SOURCE, comm, nullptr); });
}

TEST_P(Refusals, of_a_tag_below_zero) {
  expect_refused(fcclInvalidArgument, "tag is -1",
                 [](fcclComm_t comm) { return fcclSendTagged(values, 1, fcclFloat32, 0, -1, comm, nullptr); });
}

TEST_P(Refusals, of_a_receive_without_a_buffer) {
  expect_refused(fcclInvalidArgument, "recvbuff is NULL",
                 [](fcclComm_t comm) { return fcclRecv(nullptr, 1, fcclFloat32, 0, comm, nullptr); });
}

TEST_P(Refusals, of_an_all_to_all_in_place) {
  expect_refused(fcclInvalidArgument, "AlltoAll does not work in place",
                 [](fcclComm_t comm) { return fcclAlltoAll(values, values, 1, fcclFloat32, comm, nullptr); });
}

TEST_P(Refusals, of_buffers_that_overlap_but_in_place) {
  for (const auto& [shift, call] : std::vector<std::pair<int, std::function<fcclResult_t(float*, float*, fcclComm_t)>>>{
           {1,
            [](float* send, float* recv, fcclComm_t comm) { return fcclAllGather(send, recv, 8, fcclFloat32, comm, nullptr); }},
           {3, [](float* send, float* recv,
                  fcclComm_t comm) { return fcclReduceScatter(send, recv, 8, fcclFloat32, fcclSum, comm, nullptr); }},
           {-7, [](float* send, float* recv,
                   fcclComm_t comm) { return fcclAllReduce(send, recv, 8, fcclFloat32, fcclSum, comm, nullptr); }},
           {2,
            [](float* send, float* recv, fcclComm_t comm) { return fcclAlltoAll(send, recv, 8, fcclFloat32, comm, nullptr); }}})
    expect_refused(fcclInvalidArgument, "sendbuff and recvbuff overlap",
                   [shift, call](fcclComm_t comm) { return call(values + 16 + shift, values + 16, comm); });
}

TEST_P(Refusals, of_an_all_to_all_without_output) {
  expect_refused(fcclInvalidArgument, "recvbuff",
                 [](fcclComm_t comm) { return fcclAlltoAll(values, nullptr, 1, fcclFloat32, comm, nullptr); });
}

TEST_P(Refusals, of_a_deadline_that_is_not_positive) {
  expect_refused(fcclInvalidArgument, "timeoutMs", [](fcclComm_t comm) { return fcclCommSetTimeout(comm, 0); });
}

INSTANTIATE_TEST_SUITE_P(As, Refusals, ::testing::ValuesIn(sizes(1, 2)), name_of_size);

TEST(Refusal, of_null_buffers_is_not_for_a_count_of_zero) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclAllGather(nullptr, nullptr, 0, fcclFloat32, comm, nullptr)));
    EXPECT_TRUE(succeeded(fcclAllReduce(nullptr, nullptr, 0, fcclFloat32, fcclSum, comm, nullptr)));
    EXPECT_TRUE(succeeded(fcclAlltoAll(nullptr, nullptr, 0, fcclFloat32, comm, nullptr)));
  });
}

TEST(Refusal, of_null_buffers_is_not_for_those_that_a_rank_does_not_use) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    const bool root = seat.rank == 1;
    std::array<int, 2> own{seat.rank, seat.rank};
    std::array<int, 4> all{};
    EXPECT_TRUE(succeeded(fcclGather(own.data(), root ? all.data() : nullptr, 2, fcclInt32, 1, comm, nullptr)));
    if (root) {
      EXPECT_EQ(all, (std::array<int, 4>{0, 0, 1, 1}));
    }
    EXPECT_TRUE(succeeded(fcclScatter(root ? all.data() : nullptr, own.data(), 2, fcclInt32, 1, comm, nullptr)));
    EXPECT_EQ(own, (std::array<int, 2>{seat.rank, seat.rank}));
  });
}

TEST(Refusal, of_a_missing_communicator_names_it) {
  EXPECT_EQ(fcclBarrier(nullptr, nullptr), fcclInvalidArgument);
  EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("comm is NULL"), std::string::npos);
}

TEST(Refusal, of_an_id_of_zeros_comes_at_once) {
  fcclComm_t comm = nullptr;
  EXPECT_EQ(fcclCommInitRank(&comm, 2, fcclUniqueId{}, 0), fcclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Refusal, of_a_rank_out_of_range_comes_at_once) {
  fcclUniqueId id;
  ASSERT_TRUE(succeeded(fcclGetUniqueId(&id)));
  fcclComm_t comm = nullptr;
  EXPECT_EQ(fcclCommInitRank(&comm, 2, id, 2), fcclInvalidArgument);
}

TEST(Refusal, of_a_config_that_was_not_initialised_says_how_to) {
  fcclUniqueId id;
  ASSERT_TRUE(succeeded(fcclGetUniqueId(&id)));
  fcclConfig_t config;
  std::memset(&config, 0, sizeof config);
  fcclComm_t comm = nullptr;
  EXPECT_EQ(fcclCommInitRankConfig(&comm, 1, id, 0, &config), fcclInvalidArgument);
  EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("FCCL_CONFIG_INITIALIZER"), std::string::npos);
}

TEST(Refusal, of_a_bad_setting_names_the_variable) {
  const Setting slots("FCCL_SLOT_BYTES", "a lot");
  fcclUniqueId id;
  EXPECT_EQ(fcclGetUniqueId(&id), fcclInvalidUsage);
  EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("FCCL_SLOT_BYTES=a lot"), std::string::npos);
}

}  // namespace
}  // namespace fccl::core::testing
