// Tests of what the C interface refuses of a call, an operator, a stream, memory or a question: with the argument and its
// value.
#include <array>
#include <cstdint>

#include "own_ranks.h"

namespace fccl::core {
namespace {

class CallRefusal : public OwnRanks {
 protected:
  std::array<float, 16> data{};
  const size_t too_many = SIZE_MAX / 2 / sizeof(float);
};

TEST_F(CallRefusal, of_a_count_goes_by_the_ranks_together) {
  expect_refused(fcclAllGather(data.data(), data.data() + 8, too_many, fcclFloat32, comm(), nullptr),
                 "of float32 over 2 ranks is more than memory can hold");
}

TEST_F(CallRefusal, of_buffers_that_overlap_tells_how_far_they_are_apart_and_what_in_place_is) {
  expect_refused(
      fcclAllReduce(data.data(), data.data() + 1, 4, fcclFloat32, fcclSum, comm(), nullptr),
      "the 16 bytes of float32 and the 16 bytes of float32 begin 4 bytes apart; give it a recvbuff of its own, or call "
      "AllReduce in place, with recvbuff == sendbuff");
}

TEST_F(CallRefusal, of_an_all_gather_at_the_block_of_another_rank_says_where_its_own_is) {
  expect_refused(fcclAllGather(data.data(), data.data(), 4, fcclFloat32, comm(), nullptr),
                 "in place, with sendbuff == recvbuff + rank * count");
}

TEST_F(CallRefusal, of_a_handle_that_is_not_a_host_stream_says_what_is) {
  const auto stream = reinterpret_cast<fcclStream_t>(data.data());
  expect_refused(fcclBroadcast(data.data(), data.data(), 4, fcclFloat32, 0, comm(), stream),
                 "is not a host stream of this process, but the communicator is of CPU memory");
}

TEST_F(CallRefusal, of_a_displacement_beyond_all_memory_names_it) {
  const std::array<size_t, 2> counts{1, 1}, displacements{0, SIZE_MAX};
  expect_refused(
      fcclAllGatherV(data.data(), 1, data.data() + 8, counts.data(), displacements.data(), fcclFloat32, comm(), nullptr),
      "displs[1] is 18446744073709551615 with recvcounts[1] = 1 of float32: no memory reaches that far");
}

TEST_F(CallRefusal, of_counts_whose_sum_wraps_names_the_one_that_is_too_many) {
  const std::array<size_t, 2> counts{8, SIZE_MAX - 4};
  expect_refused(fcclReduceScatterV(data.data(), data.data(), counts.data(), fcclFloat32, fcclSum, comm(), nullptr),
                 "recvcounts[1] is 18446744073709551611: recvcounts of so many float32 is more than memory can hold");
}

TEST_F(CallRefusal, of_a_receive_from_a_rank_that_there_is_not_allows_any_source_only_with_a_tag) {
  expect_refused(fcclRecvTagged(data.data(), 1, fcclFloat32, 2, 0, nullptr, comm(), nullptr),
                 "peer is 2: give 0 <= peer < 2, or FCCL_ANY_SOURCE");
  expect_refused(fcclRecv(data.data(), 1, fcclFloat32, FCCL_ANY_SOURCE, comm(), nullptr), "give 0 <= peer < 2");
  EXPECT_THAT(fcclGetLastError(nullptr), ::testing::Not(::testing::HasSubstr("FCCL_ANY_SOURCE")));
}

TEST_F(CallRefusal, of_a_send_that_no_memory_holds) {
  expect_refused(fcclSend(data.data(), too_many + 1, fcclFloat32, 0, comm(), nullptr),
                 "of float32 is more than memory can hold");
}

TEST_F(CallRefusal, of_a_factor_whose_residence_is_none) {
  fcclRedOp_t op{};
  float factor = 2;
  expect_refused(fcclRedOpCreatePreMulSum(&op, &factor, fcclFloat32, static_cast<fcclScalarResidence_t>(9), comm()),
                 "residence 9 is not an fcclScalarResidence_t");
}

TEST_F(CallRefusal, of_a_factor_on_a_gpu_where_there_is_cpu_memory) {
  fcclRedOp_t op{};
  float factor = 2;
  expect_refused(fcclRedOpCreatePreMulSum(&op, &factor, fcclFloat32, fcclScalarDevice, comm()), "give fcclScalarHostImmediate");
}

TEST_F(CallRefusal, of_an_operator_that_was_destroyed_before) {
  fcclRedOp_t op{};
  float factor = 2;
  ASSERT_EQ(fcclRedOpCreatePreMulSum(&op, &factor, fcclFloat32, fcclScalarHostImmediate, comm()), fcclSuccess);
  EXPECT_EQ(fcclRedOpDestroy(op, comm()), fcclSuccess);
  expect_refused(fcclRedOpDestroy(op, comm()), "is not an operator that fcclRedOpCreatePreMulSum made for this communicator");
}

TEST_F(CallRefusal, of_an_operator_of_another_communicator) {
  fcclRedOp_t op{};
  float factor = 2;
  ASSERT_EQ(fcclRedOpCreatePreMulSum(&op, &factor, fcclFloat32, fcclScalarHostImmediate, comms[0]), fcclSuccess);
  expect_refused(fcclAllReduce(data.data(), data.data(), 4, fcclFloat32, op, comm(), nullptr), "is not an operator");
  EXPECT_EQ(fcclRedOpDestroy(op, comms[0]), fcclSuccess);
}

TEST_F(CallRefusal, of_flags_of_a_revocation_leaves_the_communicator_good) {
  expect_refused(fcclCommRevoke(comm(), 1), "flags is 1: give 0");
  fcclResult_t state = fcclInternalError;
  EXPECT_EQ(fcclCommGetAsyncError(comm(), &state), fcclSuccess);
  EXPECT_EQ(state, fcclSuccess);
}

TEST_F(CallRefusal, of_a_timeout_that_is_not_positive) {
  expect_refused(fcclCommSetTimeout(comm(), 0), "timeoutMs is 0: give milliseconds > 0");
}

TEST_F(CallRefusal, of_a_question_for_the_gpu_of_cpu_memory) {
  int device = 0;
  expect_refused(fcclCommCuDevice(comm(), &device), "it has no CUDA device", fcclInvalidUsage);
}

TEST_F(CallRefusal, of_an_end_event_on_cpu_memory) {
  int event = 0;
  expect_refused(fcclCommSetEndEvent(comm(), &event), "its calls end on no CUDA stream", fcclInvalidUsage);
}

TEST_F(CallRefusal, of_a_question_for_the_wait_for_nobody) {
  double seconds = 0;
  expect_refused(fcclCommGetWaited(comm(), 2, &seconds), "peer 2 is not a rank of a communicator of 2");
}

TEST_F(CallRefusal, of_a_counter_of_no_collective) {
  fcclCounter_t counter{};
  expect_refused(fcclCommGetCounter(comm(), fcclNumColls, &counter), "is not an fcclColl_t");
}

TEST_F(CallRefusal, of_room_for_fewer_than_no_dead_ranks) {
  int ranks[1] = {}, count = -1;
  expect_refused(fcclCommGetDeadRanks(comm(), ranks, &count), "*count is -1");
}

TEST_F(CallRefusal, of_a_registration_of_nothing) {
  void* handle = nullptr;
  expect_refused(fcclCommRegister(comm(), nullptr, 4, &handle), "buff is NULL with size 4");
}

TEST_F(CallRefusal, of_a_registration_that_has_been_given_back) {
  void* handle = nullptr;
  ASSERT_EQ(fcclCommRegister(comm(), data.data(), sizeof data, &handle), fcclSuccess);
  EXPECT_EQ(fcclCommDeregister(comm(), handle), fcclSuccess);
  expect_refused(fcclCommDeregister(comm(), handle), "is none that fcclCommRegister gave for this communicator");
}

TEST(StreamRefusal, of_a_position_that_was_not_issued_yet_tells_how_many_were) {
  fcclStream_t stream = nullptr;
  ASSERT_EQ(fcclStreamCreate(&stream), fcclSuccess) << fcclGetLastError(nullptr);
  expect_refused(fcclStreamSynchronizeTo(stream, 3, 0), "position is 3, but only 0 have been issued");
  EXPECT_EQ(fcclStreamDestroy(stream), fcclSuccess);
}

TEST(StreamRefusal, of_a_stream_that_has_been_destroyed) {
  fcclStream_t stream = nullptr;
  ASSERT_EQ(fcclStreamCreate(&stream), fcclSuccess) << fcclGetLastError(nullptr);
  EXPECT_EQ(fcclStreamDestroy(stream), fcclSuccess);
  expect_refused(fcclStreamQuery(stream), "is not a host stream of this process");
}

TEST(StreamRefusal, of_waiting_in_a_host_function_says_what_to_do) {
  fcclStream_t stream = nullptr;
  ASSERT_EQ(fcclStreamCreate(&stream), fcclSuccess) << fcclGetLastError(nullptr);
  const auto waits = [](void* own) {
    expect_refused(fcclStreamSynchronize(static_cast<fcclStream_t>(own)), "a host function may not wait", fcclInvalidUsage);
  };
  ASSERT_EQ(fcclLaunchHostFunc(stream, waits, stream), fcclSuccess);
  EXPECT_EQ(fcclStreamDestroy(stream), fcclSuccess);
}

TEST(StreamRefusal, of_no_host_function) { expect_refused(fcclLaunchHostFunc(nullptr, nullptr, nullptr), "fn is NULL"); }

TEST(MemoryRefusal, of_freeing_twice_says_so) {
  void* memory = nullptr;
  ASSERT_EQ(fcclMemAlloc(&memory, 64), fcclSuccess) << fcclGetLastError(nullptr);
  EXPECT_EQ(fcclMemFree(memory), fcclSuccess);
  expect_refused(fcclMemFree(memory), "does not come from fcclMemAlloc, or was freed before");
}

TEST(MetricsRefusal, of_a_path_and_of_a_class_of_sizes_tells_how_many_there_are) {
  fcclCallMetrics_t metrics{};
  metrics.size = sizeof metrics;
  int paths = 0;
  while (fcclMetricsPathName(paths) != nullptr) ++paths;
  expect_refused(fcclGetProcessCallMetrics(fcclCollAllGather, paths, 0, &metrics), "there is no path");
  expect_refused(fcclGetProcessCallMetrics(fcclCollAllGather, 0, -1, &metrics), "there is no class -1 of sizes");
}

TEST(MetricsText, is_cut_to_the_room_that_there_is_and_tells_its_whole_length) {
  std::array<char, 8> room{};
  size_t length = 0;
  ASSERT_EQ(fcclGetMetricsText(0, room.data(), room.size(), &length), fcclSuccess) << fcclGetLastError(nullptr);
  EXPECT_GT(length, room.size());
  EXPECT_EQ(std::string(room.data()).size(), room.size() - 1);
}

}  // namespace
}  // namespace fccl::core
