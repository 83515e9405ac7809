// Ranks whose calls differ: an error on every rank that shows both calls, at any size, within a second.
#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

struct Difference {
  const char* name;
  Recipe first;   // the call of rank 0
  Recipe others;  // the call of every other rank
};

// By a hash on the whiteboard: whether all ranks have the same text.
void expect_same_text_everywhere(const Seat& seat, const std::string& text) {
  seat.board.notes[seat.rank] = static_cast<int64_t>(std::hash<std::string>{}(text));
  seat.meet();
  EXPECT_EQ(seat.board.notes[seat.rank], seat.board.notes[0]) << text;
}

void expect_mismatch(const Seat& seat, fcclComm_t comm, const Difference& difference) {
  const Recipe& mine = seat.rank == 0 ? difference.first : difference.others;
  Trial trial(mine, seat.rank, seat.ranks);
  seat.meet();
  const int64_t begin = now_ns();
  EXPECT_EQ(trial.issue(comm), fcclInvalidUsage);
  EXPECT_TRUE(in_time(begin, 1000));
  const std::string text = fcclGetLastError(comm);
  EXPECT_NE(text.find(text_of(difference.first)), std::string::npos) << text;
  EXPECT_NE(text.find(text_of(difference.others)), std::string::npos) << text;
  EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
  expect_same_text_everywhere(seat, text);
  // The first failure stays.
  EXPECT_EQ(fcclBarrier(comm, nullptr), fcclInvalidUsage);
  EXPECT_EQ(fcclGetLastError(comm), text);
  fcclResult_t state = fcclSuccess;
  EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
  EXPECT_EQ(state, fcclInvalidUsage);
}

std::vector<Difference> differences() {
  const size_t small = 10, large = 1'000'000;
  const Recipe reduce{.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = small};
  const Recipe reduce_large{.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = large};
  const Recipe broadcast{.collective = fcclCollBroadcast, .dtype = fcclInt32, .count = small};
  const Recipe gather{.collective = fcclCollAllGather, .dtype = fcclInt32, .count = small};
  const Recipe exchange{.collective = fcclCollAlltoAll, .dtype = fcclInt32, .count = small};
  const Recipe typed{.collective = fcclCollReduceScatter, .dtype = fcclBfloat16, .count = small, .widens = true};
  const auto with = [](Recipe recipe, auto change) {
    change(recipe);
    return recipe;
  };
  return {
      {"count", reduce, with(reduce, [](Recipe& r) { r.count = 11; })},
      {"count_of_zero", reduce, with(reduce, [](Recipe& r) { r.count = 0; })},
      // The call in full lies behind the line that a smaller payload fits in.
      {"count_of_a_little_more_than_a_line", with(gather, [](Recipe& r) { r.count = 24; }),
       with(gather, [](Recipe& r) { r.count = 25; })},
      {"count_across_the_edge_of_the_mailbox", reduce, reduce_large},
      {"large_count", reduce_large, with(reduce_large, [](Recipe& r) { r.count += 1; })},
      {"type_of_equal_size", reduce, with(reduce, [](Recipe& r) { r.dtype = fcclInt32; })},
      {"operator", reduce, with(reduce, [](Recipe& r) { r.op = ReduceOp::max; })},
      {"operator_of_a_large_call", reduce_large, with(reduce_large, [](Recipe& r) { r.op = ReduceOp::avg; })},
      {"type_of_what_is_given", typed, with(typed, [](Recipe& r) { r.dtype = fcclFloat16; })},
      {"type_of_results", typed, with(typed, [](Recipe& r) { r.widens = false; })},
      {"type_of_results_of_a_large_call", with(typed, [](Recipe& r) { r.count = large; }),
       with(typed, [](Recipe& r) { r.count = large, r.widens = false; })},
      {"root", broadcast, with(broadcast, [](Recipe& r) { r.root = 1; })},
      {"root_of_a_large_call", with(broadcast, [](Recipe& r) { r.count = 500'000; }),
       with(broadcast, [](Recipe& r) { r.count = 500'000, r.root = 1; })},
      {"collective_of_the_same_lane", broadcast, gather},
      {"large_collective_of_the_same_lane", with(gather, [](Recipe& r) { r.count = 300'000; }),
       with(broadcast, [](Recipe& r) { r.count = 300'000; })},
      {"collective_of_the_other_lane", gather, reduce},
      {"large_collective_of_the_other_lane", with(gather, [](Recipe& r) { r.count = 300'000; }), reduce_large},
      {"count_of_an_all_to_all", exchange, with(exchange, [](Recipe& r) { r.count = 11; })},
      {"count_of_a_large_all_to_all", with(exchange, [](Recipe& r) { r.count = 300'000; }),
       with(exchange, [](Recipe& r) { r.count = 300'001; })},
      {"all_to_all_and_a_reduction_of_its_lane", exchange, reduce},
      {"large_all_to_all_and_a_gather", with(exchange, [](Recipe& r) { r.count = 300'000; }),
       with(gather, [](Recipe& r) { r.count = 300'000; })},
      {"barrier", {.collective = fcclCollBarrier, .dtype = fcclInt8}, gather},
  };
}

struct Case {
  Size size;
  Difference difference;
};

class Mismatch : public ::testing::TestWithParam<Case> {};

TEST_P(Mismatch, is_an_error_on_every_rank_that_shows_both_calls) {
  run_ranks(GetParam().size.launch(), [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_EQ(try_collective({.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 7}, seat.rank, seat.ranks, comm),
              "");
    expect_mismatch(seat, comm, GetParam().difference);
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Size& size : sizes(2, 3))
    for (const Difference& difference : differences()) all.push_back({size, difference});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, Mismatch, ::testing::ValuesIn(cases()), [](const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.difference.name) + "_" + std::to_string(info.param.size.ranks) + "_" +
         name_of(info.param.size.as);
});

class SplitMismatch : public ::testing::TestWithParam<Size> {};

// The steps of a split are AllGathers, too, and one of the user's may be of the same size.
TEST_P(SplitMismatch, with_an_all_gather_of_the_same_size_is_refused_on_both_sides) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const Recipe gather{.collective = fcclCollAllGather, .dtype = fcclUint8, .count = 3 * sizeof(int)};
    Trial trial(gather, seat.rank, seat.ranks);
    fcclComm_t part = nullptr;
    seat.meet();
    const int64_t begin = now_ns();
    EXPECT_EQ(seat.rank == 0 ? fcclCommSplit(comm, 0, 0, &part, nullptr) : trial.issue(comm), fcclInvalidUsage);
    EXPECT_TRUE(in_time(begin, 1000));
    EXPECT_EQ(part, nullptr);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("fcclCommSplit"), std::string::npos) << text;
    EXPECT_NE(text.find(text_of(gather)), std::string::npos) << text;
    expect_same_text_everywhere(seat, text);
  });
}

INSTANTIATE_TEST_SUITE_P(As, SplitMismatch, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

class Skipped : public ::testing::TestWithParam<Size> {};

// Rank 0 calls what `skipped` says and then what `next` says; the others only the latter.
void expect_skip_shows(const Seat& seat, const Recipe& skipped, const Recipe& next) {
  const Comm comm(seat);
  Trial first(skipped, seat.rank, seat.ranks), second(next, seat.rank, seat.ranks);
  seat.meet();
  const int64_t begin = now_ns();
  EXPECT_EQ((seat.rank == 0 ? first : second).issue(comm), fcclInvalidUsage);
  EXPECT_TRUE(in_time(begin, 1000));
  const std::string text = fcclGetLastError(comm);
  EXPECT_NE(text.find(text_of(skipped)), std::string::npos) << text;
  EXPECT_NE(text.find(text_of(next)), std::string::npos) << text;
  expect_same_text_everywhere(seat, text);
}

TEST_P(Skipped, call_shows_at_the_next_call_of_the_same_lane) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    expect_skip_shows(seat, {.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 3},
                      {.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 4});
  });
}

TEST_P(Skipped, call_shows_at_the_next_call_of_the_other_lane) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    expect_skip_shows(seat, {.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 300'000},
                      {.collective = fcclCollReduceScatter, .dtype = fcclFloat32, .count = 300'000});
  });
}

TEST_P(Skipped, call_of_the_other_lane_shows_though_the_next_calls_are_equal) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const Recipe gather{.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 3};
    const Recipe reduction{.collective = fcclCollReduceScatter, .dtype = fcclInt32, .count = 3};
    fcclStream_t one, other;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&one)));
    ASSERT_TRUE(succeeded(fcclStreamCreate(&other)));
    Trial first(gather, seat.rank, seat.ranks), second(reduction, seat.rank, seat.ranks);
    // Rank 0 gathers on a stream of its own, so that its reduction meets that of the others: equal but for its number.
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(first.issue(comm, one)));
    }
    // The others may have found out before this rank issues its own.
    const fcclResult_t issued = second.issue(comm, other);
    EXPECT_EQ(issued == fcclSuccess ? fcclStreamSynchronize(other) : issued, fcclInvalidUsage);
    EXPECT_EQ(fcclStreamDestroy(one), seat.rank == 0 ? fcclInvalidUsage : fcclSuccess);
    EXPECT_EQ(fcclStreamDestroy(other), issued == fcclSuccess ? fcclInvalidUsage : fcclSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(As, Skipped, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
