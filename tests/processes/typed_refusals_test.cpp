// Reductions into another type that are wrong on their face: refused on this rank alone, and the communicator stays good.
#include <array>
#include <functional>

#include "base/dtype.h"
#include "processes/ranks.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

float given[64], results[64];

void expect_last_error(const std::vector<std::string>& words) {
  const std::string text = fcclGetLastError(nullptr);
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
}

// Each of two ranks makes the wrong call; then both make a right one.
void expect_typed_refused(const std::vector<std::string>& words,
                          const std::function<fcclResult_t(fcclComm_t, int rank)>& call) {
  run_ranks({RanksAs::threads, 2}, [&](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_EQ(call(comm, seat.rank), fcclInvalidArgument);
    expect_last_error(words);
    EXPECT_STREQ(fcclGetLastError(comm), "");
    const Recipe right{.collective = fcclCollReduceScatter, .dtype = fcclBfloat16, .count = 50, .widens = true};
    EXPECT_EQ(try_collective(right, seat.rank, seat.ranks, comm), "");
  });
}

TEST(TypedRefusal, is_for_every_pair_but_equal_ones_and_narrow_floats_into_float32) {
  run_ranks({RanksAs::threads, 1}, [](const Seat& seat) {
    const Comm comm(seat);
    for (int from = 0; from < fcclNumTypes; ++from)
      for (int to = 0; to < fcclNumTypes; ++to) {
        const auto sendtype = static_cast<fcclDataType_t>(from), recvtype = static_cast<fcclDataType_t>(to);
        const bool exists = from == to || (to == fcclFloat32 && may_widen(fcclCollAllReduce, sendtype));
        EXPECT_EQ(fcclAllReduceTyped(given, results, 1, sendtype, recvtype, fcclSum, comm, nullptr),
                  exists ? fcclSuccess : fcclInvalidArgument)
            << fccl::core::name_of(sendtype) << " into " << fccl::core::name_of(recvtype);
        if (!exists)
          expect_last_error(
              {std::string("no AllReduce of ") + fccl::core::name_of(sendtype) + " into " + fccl::core::name_of(recvtype)});
      }
  });
}

TEST(TypedRefusal, of_a_value_that_is_no_type_says_which) {
  expect_typed_refused({"fcclReduceTyped", "sendtype 15"}, [](fcclComm_t comm, int) {
    return fcclReduceTyped(given, results, 1, fcclNumTypes, fcclFloat32, fcclSum, 0, comm, nullptr);
  });
  expect_typed_refused({"recvtype 15"}, [](fcclComm_t comm, int) {
    return fcclReduceScatterTyped(given, results, 1, fcclBfloat16, fcclNumTypes, fcclSum, comm, nullptr);
  });
}

TEST(TypedRefusal, of_buffers_that_overlap_shows_both) {
  expect_typed_refused({"sendbuff and recvbuff overlap", "8 bytes of bfloat16", "16 bytes of float32", "0 bytes apart"},
                       [](fcclComm_t comm, int) {
                         return fcclAllReduceTyped(given, given, 4, fcclBfloat16, fcclFloat32, fcclSum, comm, nullptr);
                       });
  expect_typed_refused({"16 bytes of float16", "16 bytes of float32", "12 bytes apart"}, [](fcclComm_t comm, int) {
    return fcclReduceScatterTyped(given + 3, given, 4, fcclFloat16, fcclFloat32, fcclSum, comm, nullptr);
  });
}

TEST(TypedRefusal, is_not_for_buffers_side_by_side_nor_for_a_recvbuff_that_is_not_used) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    std::array<float, 8> memory{};
    float* const target = memory.data() + 2;
    for (float* const source : {memory.data(), memory.data() + 6})
      EXPECT_TRUE(succeeded(fcclAllReduceTyped(source, target, 4, fcclBfloat16, fcclFloat32, fcclSum, comm, nullptr)));
    float* const of_root = seat.rank == 0 ? target : memory.data();
    EXPECT_TRUE(succeeded(fcclReduceTyped(memory.data(), of_root, 4, fcclBfloat16, fcclFloat32, fcclSum, 0, comm, nullptr)));
    EXPECT_TRUE(succeeded(fcclAllReduceTyped(target, target, 0, fcclBfloat16, fcclFloat32, fcclSum, comm, nullptr)));
  });
}

TEST(TypedRefusal, of_an_operator_of_the_results_type_says_so) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    float factor = 2;
    fcclRedOp_t op;
    ASSERT_TRUE(succeeded(fcclRedOpCreatePreMulSum(&op, &factor, fcclFloat32, fcclScalarHostImmediate, comm)));
    EXPECT_EQ(fcclAllReduceTyped(given, results, 1, fcclBfloat16, fcclFloat32, op, comm, nullptr), fcclInvalidArgument);
    expect_last_error({"float32", "bfloat16"});
    EXPECT_TRUE(succeeded(fcclRedOpDestroy(op, comm)));
  });
}

TEST(TypedRefusal, of_counts_that_no_memory_holds_goes_by_the_wider_type) {
  expect_typed_refused({"more than memory can hold"}, [](fcclComm_t comm, int) {
    return fcclAllReduceTyped(given, results, SIZE_MAX / 8, fcclFloat8e4m3, fcclFloat32, fcclSum, comm, nullptr);
  });
}

}  // namespace
}  // namespace fccl::core::testing
