// Collectives between hosts: every one, type, operator, root and placement, alone, in sequences, on both lanes, and in parts.
#include "processes/hosts.h"

#include <memory>
#include <random>

#include "base/call.h"
#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

// The fault of a call of this rank; "" if it is good.
std::string fault_of(const Recipe& recipe, const Seat& seat, fcclComm_t comm, const Placement& placement) {
  Trial trial(recipe, seat.rank, seat.ranks, placement);
  if (trial.issue(comm) != fcclSuccess) return describe(recipe) + ": " + fcclGetLastError(comm);
  return trial.fault();
}

class AcrossHosts : public ::testing::TestWithParam<OnHosts> {
 protected:
  static Placement placement() { return {GetParam().host_of}; }
  static void run(const std::function<void(const Seat&)>& body) { run_ranks(GetParam().launch(), body); }
};

TEST_P(AcrossHosts, collectives_are_right_with_every_root_and_count_and_in_place) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (int collective = 0; collective < fcclCollSend; ++collective)
      for (const fcclDataType_t dtype : {fcclFloat32, fcclInt8})
        for (const size_t count : {0, 1, 7, 1001, 70'001}) {
          Recipe recipe{.collective = static_cast<fcclColl_t>(collective), .dtype = dtype, .count = count};
          if (collective == fcclCollBarrier) recipe.count = 0;
          for (recipe.root = 0; recipe.root < (has_root(recipe.collective) ? seat.ranks : 1); ++recipe.root) {
            recipe.iteration = ++iteration;
            recipe.in_place = iteration % 2 == 0;
            recipe.misalignment = iteration % 3;
            EXPECT_EQ(fault_of(recipe, seat, comm, placement()), "");
          }
        }
  });
}

TEST_P(AcrossHosts, reductions_of_every_type_and_operator_follow_the_written_order) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const Reduction& reduction : every_reduction())
      for (const size_t count : {5, 3000}) {
        ++iteration;
        const Recipe recipe{.collective = kReducers[iteration % 3],
                            .dtype = reduction.dtype,
                            .count = count,
                            .op = reduction.op,
                            .root = iteration % seat.ranks,
                            .iteration = iteration};
        EXPECT_EQ(fault_of(recipe, seat, comm, placement()), "");
      }
  });
}

TEST_P(AcrossHosts, reductions_into_float32_round_nothing_for_every_pair_and_operator) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const fcclColl_t collective : kReducers)
      for (const auto& [dtype, op] : every_reduction())
        for (const size_t count : {0, 1, 5, 3001, 70'001}) {
          if (!may_widen(collective, dtype) || (count > 5 && op != ReduceOp::avg && op != ReduceOp::premul_sum)) continue;
          ++iteration;
          EXPECT_EQ(fault_of({.collective = collective,
                              .dtype = dtype,
                              .count = count,
                              .op = op,
                              .root = iteration % seat.ranks,
                              .misalignment = static_cast<size_t>(iteration % 3),
                              .iteration = iteration,
                              .widens = true},
                             seat, comm, placement()),
                    "");
        }
  });
}

TEST_P(AcrossHosts, reductions_into_another_type_on_one_rank_are_an_error_on_all_that_shows_both) {
  for (const fcclDataType_t other : {fcclFloat16, fcclFloat32})
    run([other](const Seat& seat) {
      const Comm comm(seat);
      // A rank that is still on its way out of init would have the failure there.
      seat.meet();
      const std::vector<uint16_t> send(12, 0);
      std::vector<float> recv(12);
      const bool first = seat.rank == 0;
      // Rank 0 gives another type, or takes it.
      const fcclDataType_t sendtype = first && other == fcclFloat16 ? fcclFloat16 : fcclBfloat16;
      const fcclDataType_t recvtype = first && other == fcclFloat32 ? sendtype : fcclFloat32;
      EXPECT_EQ(fcclAllReduceTyped(send.data(), recv.data(), 3, sendtype, recvtype, fcclSum, comm, nullptr), fcclInvalidUsage);
      const std::string text = fcclGetLastError(comm);
      EXPECT_NE(text.find("AllReduce(sum) of 3 bfloat16 into float32"), std::string::npos) << text;
      EXPECT_NE(text.find(other == fcclFloat16 ? "AllReduce(sum) of 3 float16 into float32" : "AllReduce(sum) of 3 bfloat16 ("),
                std::string::npos)
          << text;
    });
}

TEST_P(AcrossHosts, random_calls_are_right) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    std::mt19937_64 generator(seat.ranks);
    for (int iteration = 0; iteration < 60; ++iteration)
      EXPECT_EQ(fault_of(random_recipe(generator, seat.ranks, 300'000, iteration), seat, comm, placement()), "");
  });
}

TEST_P(AcrossHosts, random_calls_through_small_slots_are_right) {
  const Setting slots("FCCL_SLOT_BYTES", "1024");
  const Setting wire_slots("FCCL_WIRE_SLOT_BYTES", "4096");
  run([](const Seat& seat) {
    const Comm comm(seat);
    std::mt19937_64 generator(seat.ranks + 100);
    for (int iteration = 0; iteration < 40; ++iteration)
      EXPECT_EQ(fault_of(random_recipe(generator, seat.ranks, 60'000, iteration), seat, comm, placement()), "");
  });
}

// All buffers are made before and looked at behind, so that ranks run apart as far as they may.
TEST_P(AcrossHosts, calls_back_to_back_give_every_call_its_own_result) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    std::mt19937_64 generator(7);
    std::vector<std::unique_ptr<Trial>> trials;
    for (int i = 0; i < 60; ++i)
      trials.push_back(
          std::make_unique<Trial>(random_recipe(generator, seat.ranks, 20'000, i), seat.rank, seat.ranks, placement()));
    for (const auto& trial : trials) EXPECT_TRUE(succeeded(trial->issue(comm)));
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
  });
}

TEST_P(AcrossHosts, both_lanes_run_at_once_on_two_streams) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    const TestStream gathers, reductions;
    std::vector<std::unique_ptr<Trial>> trials;
    for (int i = 0; i < 12; ++i) {
      const bool reduces = i % 2 != 0;
      const Recipe recipe{.collective = reduces ? kReducers[i % 3] : kMovers[i % 4],
                          .dtype = fcclFloat32,
                          .count = i % 5 == 0 ? size_t{3} : size_t{60'000},
                          .root = i % seat.ranks,
                          .iteration = i};
      trials.push_back(std::make_unique<Trial>(recipe, seat.rank, seat.ranks, placement()));
      EXPECT_TRUE(succeeded(trials.back()->issue(comm, reduces ? reductions : gathers)));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(gathers)));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(reductions)));
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
  });
}

TEST_P(AcrossHosts, exchanges_of_every_pattern_of_counts_are_right) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const fcclColl_t collective : {fcclCollAllGatherV, fcclCollReduceScatterV, fcclCollAlltoAllV})
      for (const Shares shares : kEveryShares)
        for (const size_t count : {1, 300, 40'001}) {
          ++iteration;
          EXPECT_EQ(fault_of({.collective = collective,
                              .dtype = fcclFloat32,
                              .count = count,
                              .in_place = iteration % 3 == 0,
                              .iteration = iteration,
                              .shares = shares,
                              .is_displaced = iteration % 2 == 0},
                             seat, comm, placement()),
                    "");
        }
  });
}

// Rank 0 and the last one are of different hosts.
TEST_P(AcrossHosts, counts_that_differ_between_two_hosts_are_an_error_on_both_sides_that_shows_both_numbers) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    const auto ranks = static_cast<size_t>(seat.ranks);
    const int last = seat.ranks - 1;
    std::vector<size_t> sendcounts(ranks, 3), recvcounts(ranks, 3);
    if (seat.rank == last) sendcounts[0] = 5;
    const std::vector<int32_t> send(6 * ranks, seat.rank);
    std::vector<int32_t> recv(3 * ranks, -1);
    seat.meet();
    const int64_t begin = now_ns();
    fcclResult_t result = fcclAlltoAllV(send.data(), sendcounts.data(), nullptr, recv.data(), recvcounts.data(), nullptr,
                                        fcclInt32, comm, nullptr);
    if (seat.rank == 0 || seat.rank == last) {
      EXPECT_EQ(recv, std::vector<int32_t>(recv.size(), -1)) << "data moved before the counts were compared";
    } else if (result == fcclSuccess) {
      result = fcclBarrier(comm, nullptr);
    }
    EXPECT_EQ(result, fcclInvalidUsage);
    EXPECT_TRUE(in_time(begin, 1000));
    const std::string text = fcclGetLastError(comm), from = "rank " + std::to_string(last);
    for (const std::string& word : {from + " (pid", std::string("sends 5 elements to rank 0 (pid"),
                                    std::string("which expects 3"), "sendcounts[0] on " + from})
      EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
  });
}

// The ranks of a part, where they are, and which of them this is.
void try_part(const Seat& seat, fcclComm_t comm, int color) {
  fcclComm_t made = nullptr;
  ASSERT_TRUE(succeeded(fcclCommSplit(comm, color, seat.rank, &made, nullptr)));
  const Comm part(made);
  Placement placement;
  std::vector<int> colors(seat.ranks), hosts(seat.ranks);
  ASSERT_TRUE(succeeded(fcclAllGather(&color, colors.data(), 1, fcclInt32, comm, nullptr)));
  const int host = std::stoi(std::string(getenv("FCCL_HOST_ID")).substr(4));
  ASSERT_TRUE(succeeded(fcclAllGather(&host, hosts.data(), 1, fcclInt32, comm, nullptr)));
  int rank = 0;
  for (int other = 0; other < seat.ranks; ++other) {
    if (colors[other] != color) continue;
    if (other < seat.rank) ++rank;
    placement.host_of.push_back(hosts[other]);
  }
  const Seat place{rank, static_cast<int>(placement.host_of.size()), seat.board};
  std::mt19937_64 generator(color);
  for (int iteration = 0; iteration < 15; ++iteration)
    EXPECT_EQ(fault_of(random_recipe(generator, place.ranks, 30'000, iteration), place, part, placement), "");
}

TEST_P(AcrossHosts, parts_inside_and_across_hosts_work_beside_the_whole) {
  run([](const Seat& seat) {
    const Comm comm(seat);
    const std::vector<int>& host_of = GetParam().host_of;
    try_part(seat, comm, host_of[seat.rank]);
    try_part(seat, comm, seat.rank % 2);
    // Rank 0 and the last one apart from the others: of more hosts than the rest, or of fewer.
    try_part(seat, comm, seat.rank == 0 || seat.rank == seat.ranks - 1);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  });
}

INSTANTIATE_TEST_SUITE_P(Of, AcrossHosts, ::testing::Values(kThreeAndOne, kInTurn), name_of_hosts);
INSTANTIATE_TEST_SUITE_P(Long, AcrossHosts,
                         ::testing::Values(kTwoAndTwo, kTwoAndOneAndOne, OnHosts{"5_hosts_of_1_rank", {0, 1, 2, 3, 4}}),
                         name_of_hosts);

// The same bits as on one host, where the numbers of hosts and of ranks are powers of two.
class SumsOf4Ranks : public ::testing::TestWithParam<OnHosts> {
  const Setting wire_{"FCCL_WIRE_DTYPE", "float32"};
};

TEST_P(SumsOf4Ranks, have_the_same_bits_as_on_one_host_with_float32_on_the_wire) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const Reduction& reduction : every_reduction())
      for (const size_t count : {7, 20'000}) {
        Recipe recipe{.collective = kReducers[++iteration % 3],
                      .dtype = reduction.dtype,
                      .count = count,
                      .op = reduction.op,
                      .iteration = iteration};
        EXPECT_EQ(fault_of(recipe, seat, comm, {}), "");
        recipe.widens = may_widen(recipe.collective, recipe.dtype);
        if (recipe.widens) {
          EXPECT_EQ(fault_of(recipe, seat, comm, {}), "");
        }
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Of, SumsOf4Ranks,
                         ::testing::Values(OnHosts{"1_host", {0, 0, 0, 0}}, kTwoAndTwo, OnHosts{"4_hosts", {0, 1, 2, 3}}),
                         name_of_hosts);

}  // namespace
}  // namespace fccl::core::testing
