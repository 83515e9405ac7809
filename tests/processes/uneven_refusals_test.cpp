// Arrays of counts and displacements that are wrong on their face: refused on this rank alone, and the communicator stays good.
#include <array>

#include "processes/ranks.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using Numbers = std::array<size_t, 2>;

float send[64], recv[64];

// Each of two ranks makes the wrong call; then both make a right one.
void expect_refused(const std::vector<std::string>& words, const std::function<fcclResult_t(fcclComm_t, int rank)>& call) {
  run_ranks({RanksAs::threads, 2}, [&](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_EQ(call(comm, seat.rank), fcclInvalidArgument);
    const std::string text = fcclGetLastError(nullptr);
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
    EXPECT_STREQ(fcclGetLastError(comm), "");
    EXPECT_EQ(try_collective({.collective = fcclCollAlltoAllV, .dtype = fcclInt8, .count = 50}, seat.rank, seat.ranks, comm),
              "");
  });
}

fcclResult_t gather(fcclComm_t comm, size_t sendcount, const size_t* counts, const size_t* displs) {
  return fcclAllGatherV(send, sendcount, recv, counts, displs, fcclFloat32, comm, nullptr);
}

TEST(UnevenRefusal, of_missing_counts_names_the_array) {
  expect_refused({"recvcounts is NULL", "2 ranks"}, [](fcclComm_t comm, int) { return gather(comm, 1, nullptr, nullptr); });
  expect_refused({"sendcounts is NULL"}, [](fcclComm_t comm, int) {
    const Numbers counts{1, 1};
    return fcclAlltoAllV(send, nullptr, nullptr, recv, counts.data(), nullptr, fcclFloat32, comm, nullptr);
  });
}

TEST(UnevenRefusal, of_a_sendcount_that_is_not_the_rank_s_recvcount_shows_both) {
  expect_refused({"sendcount is 7", "is 5"}, [](fcclComm_t comm, int) {
    const Numbers counts{5, 5};
    return gather(comm, 7, counts.data(), nullptr);
  });
}

TEST(UnevenRefusal, of_blocks_that_overlap_shows_both) {
  expect_refused({"blocks 0 and 1 of recvbuff overlap", "5 elements at 4", "6 at 0", "displs"}, [](fcclComm_t comm, int rank) {
    const Numbers counts{5, 6}, displs{4, 0};
    return gather(comm, counts[static_cast<size_t>(rank)], counts.data(), displs.data());
  });
  expect_refused({"blocks 0 and 1 of recvbuff overlap", "rdispls"}, [](fcclComm_t comm, int) {
    const Numbers counts{2, 2}, displs{0, 1};
    return fcclAlltoAllV(send, counts.data(), nullptr, recv, counts.data(), displs.data(), fcclFloat32, comm, nullptr);
  });
}

TEST(UnevenRefusal, of_a_sendbuff_that_overlaps_recvbuff_but_in_place) {
  std::vector<float> buffer(64);
  float* values = buffer.data();
  expect_refused({"sendbuff and recvbuff overlap", "block 0 of sendbuff (16 bytes)", "own block"},
                 [&](fcclComm_t comm, int rank) {
                   const size_t counts[] = {4, 4}, displs[] = {0, 4};
                   return fcclAllGatherV(values + displs[rank] + 1, 4, values, counts, displs, fcclFloat32, comm, nullptr);
                 });
  expect_refused({"sendbuff and recvbuff overlap", "of recvbuff (16 bytes)", "own block"}, [&](fcclComm_t comm, int rank) {
    const size_t counts[] = {4, 4};
    return fcclReduceScatterV(values, values + (rank == 0 ? 4 : 0), counts, fcclFloat32, fcclSum, comm, nullptr);
  });
  expect_refused({"sendbuff and recvbuff overlap", "AlltoAllV does not work in place"}, [&](fcclComm_t comm, int) {
    const size_t counts[] = {4, 4}, from[] = {0, 4}, to[] = {4, 8};
    return fcclAlltoAllV(values, counts, from, values + 2, counts, to, fcclFloat32, comm, nullptr);
  });
}

TEST(UnevenRefusal, of_blocks_that_overlap_is_not_for_empty_ones_nor_for_those_that_are_sent) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    const Numbers some{3, 0}, inside{0, 1}, ones{1, 1}, same{4, 4};
    std::array<int, 8> from{}, to{};
    from.fill(seat.rank + 1);
    EXPECT_TRUE(succeeded(fcclAllGatherV(from.data(), some[static_cast<size_t>(seat.rank)], to.data(), some.data(),
                                         inside.data(), fcclInt32, comm, nullptr)));
    EXPECT_EQ(to, (std::array<int, 8>{1, 1, 1}));
    EXPECT_TRUE(succeeded(
        fcclAlltoAllV(from.data(), ones.data(), same.data(), to.data(), ones.data(), nullptr, fcclInt32, comm, nullptr)));
    EXPECT_EQ(to, (std::array<int, 8>{1, 2, 1}));
  });
}

TEST(UnevenRefusal, of_counts_that_no_memory_holds_names_the_first) {
  expect_refused({"recvcounts[1] is", "more than memory can hold"}, [](fcclComm_t comm, int) {
    const Numbers counts{1, SIZE_MAX / 4};
    return fcclReduceScatterV(send, recv, counts.data(), fcclFloat32, fcclSum, comm, nullptr);
  });
  expect_refused({"displs[1] is", "no memory reaches that far"}, [](fcclComm_t comm, int) {
    const Numbers counts{1, 1}, displs{0, SIZE_MAX / 4};
    return gather(comm, 1, counts.data(), displs.data());
  });
}

TEST(UnevenRefusal, of_an_exchange_with_oneself_that_does_not_fit_shows_both) {
  expect_refused({"sendcounts[", "] is 3", "recvcounts[", "] is 2"}, [](fcclComm_t comm, int) {
    const Numbers sent{3, 3}, received{2, 2};
    return fcclAlltoAllV(send, sent.data(), nullptr, recv, received.data(), nullptr, fcclFloat32, comm, nullptr);
  });
}

TEST(UnevenRefusal, of_an_exchange_in_place_says_why) {
  expect_refused({"AlltoAllV does not work in place"}, [](fcclComm_t comm, int) {
    const Numbers counts{1, 1};
    return fcclAlltoAllV(send, counts.data(), nullptr, send, counts.data(), nullptr, fcclFloat32, comm, nullptr);
  });
}

TEST(UnevenRefusal, of_null_buffers_is_for_counts_that_are_not_all_zero) {
  expect_refused({"sendbuff is NULL with count 2"}, [](fcclComm_t comm, int) {
    const Numbers counts{1, 1};
    return fcclReduceScatterV(nullptr, recv, counts.data(), fcclFloat32, fcclSum, comm, nullptr);
  });
  expect_refused({"recvbuff is NULL with count 2"}, [](fcclComm_t comm, int) {
    const Numbers counts{1, 1};
    return fcclAllGatherV(send, 1, nullptr, counts.data(), nullptr, fcclFloat32, comm, nullptr);
  });
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    const Numbers none{}, far{7, 9};
    EXPECT_TRUE(succeeded(fcclAllGatherV(nullptr, 0, nullptr, none.data(), far.data(), fcclInt32, comm, nullptr)));
    EXPECT_TRUE(succeeded(fcclReduceScatterV(nullptr, nullptr, none.data(), fcclInt32, fcclSum, comm, nullptr)));
    EXPECT_TRUE(
        succeeded(fcclAlltoAllV(nullptr, none.data(), far.data(), nullptr, none.data(), far.data(), fcclInt32, comm, nullptr)));
  });
}

TEST(UnevenRefusal, of_a_missing_communicator_or_a_value_that_is_no_type_comes_first) {
  const Numbers counts{1, 1};
  EXPECT_EQ(gather(nullptr, 1, counts.data(), nullptr), fcclInvalidArgument);
  EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("comm is NULL"), std::string::npos);
  expect_refused({"datatype"}, [](fcclComm_t comm, int) {
    const Numbers ones{1, 1};
    return fcclReduceScatterV(send, recv, ones.data(), fcclNumTypes, fcclSum, comm, nullptr);
  });
  expect_refused({"avg of bool has no meaning"}, [](fcclComm_t comm, int) {
    const Numbers ones{1, 1};
    return fcclReduceScatterV(send, recv, ones.data(), fcclBool, fcclAvg, comm, nullptr);
  });
}

}  // namespace
}  // namespace fccl::core::testing
