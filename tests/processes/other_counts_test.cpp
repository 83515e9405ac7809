// Counts of a collective of uneven counts on which the ranks do not agree: an error on both sides that shows both numbers.
#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

class OtherCounts : public ::testing::TestWithParam<Size> {};

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
}

// An AlltoAllV of `count` everywhere, in which rank 1 sends rank 0 two elements more, or expects two more from it.
struct CountThatDiffers {
  bool is_sent;
  size_t count;
};

void expect_both_fail(const Seat& seat, const CountThatDiffers& difference) {
  const Comm comm(seat);
  const auto ranks = static_cast<size_t>(seat.ranks);
  std::vector<size_t> sendcounts(ranks, difference.count), recvcounts(ranks, difference.count);
  if (seat.rank == 1) (difference.is_sent ? sendcounts : recvcounts)[0] += 2;
  const std::vector<int32_t> send((difference.count + 2) * ranks, seat.rank);
  std::vector<int32_t> recv((difference.count + 2) * ranks, -1);
  seat.meet();
  const int64_t begin = now_ns();
  fcclResult_t result =
      fcclAlltoAllV(send.data(), sendcounts.data(), nullptr, recv.data(), recvcounts.data(), nullptr, fcclInt32, comm, nullptr);
  if (seat.rank <= 1) {
    EXPECT_EQ(result, fcclInvalidUsage);
    EXPECT_EQ(recv, std::vector<int32_t>(recv.size(), -1)) << "data moved before the counts were compared";
  } else {
    // A rank that they do not concern may have done its part, and hears of it in the next call.
    if (result == fcclSuccess) result = fcclBarrier(comm, nullptr);
    EXPECT_EQ(result, fcclInvalidUsage);
  }
  EXPECT_TRUE(in_time(begin, 1000));
  const std::string more = std::to_string(difference.count + 2), less = std::to_string(difference.count);
  const std::string from = difference.is_sent ? "1" : "0", to = difference.is_sent ? "0" : "1";
  expect_words(fcclGetLastError(comm),
               {"AlltoAllV of int32", "sends " + (difference.is_sent ? more : less) + " elements to rank " + to,
                "which expects " + (difference.is_sent ? less : more), "sendcounts[" + to + "] on rank " + from,
                "recvcounts[" + from + "] on rank " + to});
}

TEST_P(OtherCounts, of_what_is_sent_are_an_error_on_both_sides_that_shows_both_numbers) {
  for (const size_t count : {0, 3, 50'000})
    run_ranks(GetParam().launch(), [&](const Seat& seat) { expect_both_fail(seat, {true, count}); });
}

TEST_P(OtherCounts, of_what_is_expected_are_an_error_on_both_sides_that_shows_both_numbers) {
  for (const size_t count : {0, 3, 50'000})
    run_ranks(GetParam().launch(), [&](const Seat& seat) { expect_both_fail(seat, {false, count}); });
}

// Only one of the two finds no room for its blocks beside its word.
TEST_P(OtherCounts, across_the_edge_of_the_mailbox_are_an_error_on_both_sides) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const auto ranks = static_cast<size_t>(seat.ranks);
    std::vector<size_t> sendcounts(ranks, 1), recvcounts(ranks, 1);
    if (seat.rank == 1) sendcounts[0] = 100'000;
    const std::vector<int32_t> send(100'000 + ranks);
    std::vector<int32_t> recv(ranks);
    // A rank that is still on its way out of init would have the failure there.
    seat.meet();
    fcclResult_t result = fcclAlltoAllV(send.data(), sendcounts.data(), nullptr, recv.data(), recvcounts.data(), nullptr,
                                        fcclInt32, comm, nullptr);
    if (seat.rank > 1 && result == fcclSuccess) result = fcclBarrier(comm, nullptr);
    EXPECT_EQ(result, fcclInvalidUsage);
    expect_words(fcclGetLastError(comm), {"sends 100000 elements to rank 0", "which expects 1."});
  });
}

// The common part of the calls differs though the sums do not.
TEST_P(OtherCounts, of_an_all_gather_or_a_reduce_scatter_are_calls_that_differ) {
  for (const bool gathers : {true, false})
    for (const size_t count : {10, 100'000})
      run_ranks(GetParam().launch(), [&](const Seat& seat) {
        const Comm comm(seat);
        const auto ranks = static_cast<size_t>(seat.ranks), rank = static_cast<size_t>(seat.rank);
        std::vector<size_t> counts(ranks, count);
        if (seat.rank == 1) ++counts[0], --counts[1];
        const std::vector<int32_t> send(count * ranks);
        std::vector<int32_t> recv(count * ranks);
        seat.meet();
        const int64_t begin = now_ns();
        const fcclResult_t result =
            gathers ? fcclAllGatherV(send.data(), counts[rank], recv.data(), counts.data(), nullptr, fcclInt32, comm, nullptr)
                    : fcclReduceScatterV(send.data(), recv.data(), counts.data(), fcclInt32, fcclSum, comm, nullptr);
        EXPECT_EQ(result, fcclInvalidUsage);
        EXPECT_TRUE(in_time(begin, 1000));
        expect_words(fcclGetLastError(comm),
                     {"the ranks' calls differ", gathers ? "AllGatherV of" : "ReduceScatterV(sum) of",
                      std::to_string(count * ranks) + " int32 in all", "recvcounts with hash", "rank 1"});
      });
}

INSTANTIATE_TEST_SUITE_P(As, OtherCounts, ::testing::ValuesIn(sizes(2, 4)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
