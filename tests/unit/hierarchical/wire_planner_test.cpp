// Which algorithm a call between hosts takes, and into how many slices it is cut.
#include "hierarchical/wire_planner.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "plan/catalog.h"
#include "plan/choose.h"

namespace fccl::core {
namespace {

constexpr CostConstants kCosts{
    .latency = 1.5e-5, .message = 1.25e-6, .wire_byte = 8e-11, .added_byte = 5e-12, .host_byte = 2.5e-12};

// One rank on each of four hosts, with slots that never ask for more slices than suit.
const Columns kColumns({{0}, {1}, {2}, {3}}, 0);

WireSettings settings_with_slots_of(size_t bytes) {
  return {.costs = kCosts, .slot_bytes = bytes, .host_slot_bytes = size_t{1} << 30};
}

plan::Chooser chooser() { return plan::Chooser(plan::Shape::of_equal_hosts(4, 1, 1, kCosts)); }

int place_of(fcclColl_t collective, const std::string& name) {
  const auto& catalog = plan::kCatalog<plan::Project>;
  for (size_t i = 0; i < catalog.size(); ++i)
    if (catalog[i].collective == collective && catalog[i].name == name) return static_cast<int>(i);
  return -1;
}

TEST(WirePlanner, cuts_a_call_into_the_slices_that_suit_the_algorithm_it_was_told_to_take) {
  WirePlanner planner(kColumns, settings_with_slots_of(size_t{1} << 30));
  planner.prefer("tree");
  // The call has 1 MiB, so that no slice is larger than what is staged for one.
  const Signature broadcast{fcclCollBroadcast, fcclInt8, ReduceOp::sum, 0, size_t{1} << 20};
  const plan::Request request{broadcast.collective, static_cast<double>(broadcast.bytes())};
  const plan::Choice suits = chooser().best_slices(place_of(broadcast.collective, "tree"), request);
  const plan::Choice cheapest = chooser().choose(request);
  ASSERT_NE(cheapest.slices, suits.slices) << "the cheapest algorithm would be cut alike";
  EXPECT_EQ(planner.wire_plan_of({broadcast}, 0).pieces.slices, static_cast<uint64_t>(suits.slices));
}

TEST(WirePlanner, takes_no_algorithm_whose_messages_of_many_chunks_are_larger_than_a_slot) {
  const Signature all_gather{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, size_t{1} << 10};
  // Two chunks of 64 bytes each, the least, go in a message of the algorithm of Bruck between four hosts.
  WirePlanner with_room(kColumns, settings_with_slots_of(128));
  with_room.prefer("bruck");
  EXPECT_TRUE(with_room.wire_plan_of({all_gather}, 0).hands_on);
  WirePlanner without(kColumns, settings_with_slots_of(127));
  without.prefer("bruck");
  const WirePlan plan = without.wire_plan_of({all_gather}, 0);
  EXPECT_FALSE(plan.hands_on);
  EXPECT_EQ(plan.pieces.piece_elements, 64u);
  EXPECT_EQ(plan.pieces.slices, 16u);
}

TEST(WirePlanner, sends_beside_the_entries_what_fits_into_their_payload) {
  WirePlanner planner(kColumns, settings_with_slots_of(size_t{1} << 30));
  for (const size_t count : {size_t{0}, size_t{1024}, size_t{1025}}) {
    const Signature broadcast{fcclCollBroadcast, fcclFloat32, ReduceOp::sum, 0, count};
    const WirePlan plan = planner.wire_plan_of({broadcast}, 0);
    EXPECT_EQ(plan.beside_entries, count <= 1024) << count;
    EXPECT_EQ(plan.steps == nullptr, count <= 1024) << count;
    EXPECT_EQ(plan.pieces.blocks.total(), count * sizeof(float));
  }
}

// Each message costs more than the way of one.
WireSettings settings_of_dear_messages() {
  WireSettings settings = settings_with_slots_of(size_t{1} << 30);
  settings.costs.message = 3e-5;
  return settings;
}

TEST(WirePlanner, spreads_entries_by_dissemination_between_more_than_three_hosts_where_that_takes_less_time) {
  const Signature all_reduce{fcclCollAllReduce, fcclInt8, ReduceOp::sum, -1, 8};
  const auto is_spread = [&](const Columns& columns, const Signature& signature) {
    WirePlanner planner(columns, settings_of_dear_messages());
    return planner.wire_plan_of({signature}, 0).by_dissemination;
  };
  WirePlanner of_cheap_messages(kColumns, settings_with_slots_of(size_t{1} << 30));
  EXPECT_FALSE(of_cheap_messages.wire_plan_of({all_reduce}, 0).by_dissemination);
  EXPECT_TRUE(is_spread(kColumns, all_reduce));
  EXPECT_FALSE(is_spread(Columns({{0}, {1}, {2}}, 0), all_reduce));
  EXPECT_TRUE(is_spread(kColumns, {fcclCollReduceScatter, fcclInt8, ReduceOp::sum, -1, 8}));
}

TEST(WirePlanner, spreads_blocks_of_pairs_only_where_those_who_pass_them_on_know_their_lengths) {
  const auto is_spread = [](const Columns& columns, fcclColl_t collective) {
    WirePlanner planner(columns, settings_of_dear_messages());
    const WirePlan plan = planner.wire_plan_of({{collective, fcclInt8, ReduceOp::sum, -1, 8}}, 8);
    EXPECT_TRUE(plan.beside_entries);
    return plan.by_dissemination;
  };
  const Columns even({{0, 1}, {2, 3}, {4, 5}, {6, 7}}, 0), uneven({{0, 1}, {2, 3}, {4, 5}, {6}}, 0);
  EXPECT_TRUE(is_spread(even, fcclCollAlltoAll));
  EXPECT_FALSE(is_spread(even, fcclCollAlltoAllV));
  EXPECT_FALSE(is_spread(uneven, fcclCollAlltoAll));
}

// Other calls need not, but it shows that every host reaches every other.
TEST(WirePlanner, lets_each_host_tell_all_others_in_the_barrier_of_init) {
  for (const int hosts : {4, 6, 33}) {
    std::vector<std::vector<int>> ranks;
    for (int host = 0; host < hosts; ++host) ranks.push_back({host});
    const Columns columns(std::move(ranks), 0);
    WirePlanner planner(columns, settings_of_dear_messages());
    Signature barrier{.collective = fcclCollBarrier};
    EXPECT_TRUE(planner.wire_plan_of({barrier}, 0).by_dissemination) << hosts;
    barrier.issuer = Issuer::init;
    EXPECT_FALSE(planner.wire_plan_of({barrier}, 0).by_dissemination) << hosts;
  }
}

TEST(WirePlanner, spreads_content_only_if_a_message_holds_that_of_half_of_the_hosts) {
  WirePlanner planner(kColumns, settings_of_dear_messages());
  const auto plan_of = [&](fcclColl_t collective, size_t count) {
    return planner.wire_plan_of({Signature{collective, fcclInt8, ReduceOp::sum, 0, count}}, 0);
  };
  EXPECT_TRUE(plan_of(fcclCollReduce, 2048).by_dissemination);
  EXPECT_FALSE(plan_of(fcclCollReduce, 2112).by_dissemination);
  EXPECT_TRUE(plan_of(fcclCollReduce, 2112).beside_entries);
  // The root alone has content.
  EXPECT_TRUE(plan_of(fcclCollBroadcast, 4096).by_dissemination);
  EXPECT_TRUE(plan_of(fcclCollBroadcast, 4096).beside_entries);
  // A plan moves the data, so the entries are empty.
  EXPECT_TRUE(plan_of(fcclCollReduce, 1 << 20).by_dissemination);
}

TEST(WirePlanner, sends_nothing_beside_the_entries_that_is_longer_than_a_slot_of_the_host) {
  WirePlanner planner(kColumns, {.costs = kCosts, .slot_bytes = size_t{1} << 30, .host_slot_bytes = 256});
  const auto plan_of = [&](size_t count) {
    return planner.wire_plan_of({Signature{fcclCollBroadcast, fcclInt8, ReduceOp::sum, 0, count}}, 0);
  };
  EXPECT_TRUE(plan_of(256).beside_entries);
  EXPECT_EQ(plan_of(256).pieces.slices, 1u);
  EXPECT_FALSE(plan_of(257).beside_entries);
  EXPECT_GT(plan_of(257).pieces.slices, 1u);
}

}  // namespace
}  // namespace fccl::core
