// Compares the costs of algorithms with the textbook's formulas.
#include "plan/price.h"

#include <gtest/gtest.h>

#include "base/collective.h"
#include "plan/catalog.h"
#include "plan/entry_rounds.h"
#include "plan/ring.h"

namespace fccl::core::plan {
namespace {

Cost cost_of(void (*tell)(Group, Price&), int members) {
  Price sink({members});
  tell({members}, sink);
  return sink.cost();
}

int log2_rounded_up(int n) {
  int log = 0;
  while (1 << log < n) ++log;
  return log;
}

TEST(Price, of_algorithms_is_the_textbooks) {
  for (int n : {2, 3, 4, 5, 8, 31, 64, 512}) {
    const Cost pairwise = cost_of(pairwise_all_gather, n);
    EXPECT_EQ(pairwise.rounds, 1);
    EXPECT_EQ(pairwise.path, (Load{n - 1, n - 1}));
    EXPECT_EQ(pairwise.port, pairwise.path);
    const Cost bruck = cost_of(bruck_all_gather, n);
    EXPECT_EQ(bruck.rounds, log2_rounded_up(n));
    EXPECT_EQ(bruck.path, (Load{log2_rounded_up(n), n - 1}));
    EXPECT_EQ(bruck.port, bruck.path);
    const Cost tree = cost_of(tree_broadcast, n);
    EXPECT_EQ(tree.rounds, log2_rounded_up(n));
    EXPECT_EQ(tree.path, (Load{log2_rounded_up(n), log2_rounded_up(n)}));
    const Cost chain = cost_of(chain_broadcast, n);
    EXPECT_EQ(chain.path, (Load{n - 1, n - 1}));
    EXPECT_EQ(chain.port, (Load{1, 1}));
    const Cost ring = cost_of(ring_all_gather, n);
    EXPECT_EQ(ring.rounds, n - 1);
    EXPECT_EQ(ring.path, (Load{n - 1, n - 1}));
  }
}

TEST(Price, of_a_sum_counts_the_additions_of_the_busiest_member) {
  EXPECT_EQ(cost_of(pairwise_reduce_scatter, 8).additions, 1);
  EXPECT_EQ(cost_of(direct_reduce, 8).additions, 1);
  EXPECT_EQ(cost_of(pairwise_all_gather, 8).additions, 0);
}

// Compares the count by one member with a count of all members' transfers.
TEST(Price, of_the_root_is_that_of_the_busiest_member) {
  struct Ports {
    std::vector<Load> out, in;
    int member() const { return kEveryMember; }
    void transfer(const Transfer& t) {
      for (Load* load : {&out[t.from], &in[t.to]}) *load = {load->messages + 1, load->chunks + t.count};
    }
    void add(const Addition&) {}
  };
  for (int n : {2, 3, 7, 16})
    for (size_t i = 0; i < kCatalog<Ports>.size(); ++i) {
      Ports ports{std::vector<Load>(n), std::vector<Load>(n)};
      kCatalog<Ports>[i].tell({n}, ports);
      Load busiest;
      for (const auto& side : {ports.out, ports.in})
        for (const Load& load : side)
          busiest = {std::max(busiest.messages, load.messages), std::max(busiest.chunks, load.chunks)};
      EXPECT_EQ(price_catalog(n)[i].port, busiest) << kCatalog<Ports>[i].name << " of " << n;
    }
}

constexpr CostConstants kConstants{
    .latency = 1e-5, .message = 1e-6, .wire_byte = 1e-8, .added_byte = 1e-10, .host_byte = 1e-10};

TEST(Prediction, of_one_message_is_latency_and_the_message_and_its_bytes_over_the_rails) {
  const Shape shape = Shape::of_equal_hosts(2, 2, 2, kConstants);
  const Time time = predict({fcclCollAllGather, 1000}, Cut::per_member, cost_of(pairwise_all_gather, 2), shape, 1);
  EXPECT_DOUBLE_EQ(time.latency, 1e-5);
  EXPECT_DOUBLE_EQ(time.message, 1e-6);
  EXPECT_DOUBLE_EQ(time.wire, 1000 * 1e-8);  // two ranks, two rails
  EXPECT_DOUBLE_EQ(time.host, 2 * 2 * 1000 * 1e-10);
}

// Returns the seconds for four consecutive messages in one round, with these times per message to post and on the wire.
double seconds_of_four(double message, double wire) {
  const Shape shape = Shape::of_equal_hosts(5, 1, 1, {0, message, wire, 0, 0});
  return predict({fcclCollAllGather, 1}, Cut::per_member, cost_of(pairwise_all_gather, 5), shape, 1).total();
}

TEST(Prediction, of_messages_on_a_slow_wire_is_the_first_and_then_the_wires_time) {
  EXPECT_NEAR(seconds_of_four(1e-6, 1e-3), 1e-6 + 4e-3, 1e-8);
}

TEST(Prediction, of_messages_that_are_dear_is_theirs_and_then_the_wires_time_of_one) {
  EXPECT_NEAR(seconds_of_four(1e-3, 1e-6), 4e-3 + 1e-6, 1e-8);
}

TEST(Prediction, of_messages_that_take_as_long_as_their_bytes_lies_between_the_longer_and_the_sum) {
  const double alone = seconds_of_four(1e-3, 0), together = seconds_of_four(1e-3, 1e-3);
  EXPECT_GT(together, 1.2 * alone);
  EXPECT_LT(together, 1.8 * alone);
}

TEST(Prediction, of_a_slow_host_is_the_first_message_and_then_the_hosts_time) {
  Shape shape = Shape::of_equal_hosts(5, 1, 1, kConstants);
  shape.constants.host_byte = 1e-6;
  const Time time = predict({fcclCollAllGather, 1000}, Cut::per_member, cost_of(pairwise_all_gather, 5), shape, 1);
  const double first_message = 1e-6 + 1000 * 1e-8;
  EXPECT_NEAR(time.total(), 1e-5 + first_message + 5 * 1000 * 1e-6, 1e-6);
}

// Checks the joint pace of the message, wire and host stages.
TEST(Prediction, adds_up_to_the_pace_of_all_stages) {
  const Shape shape = Shape::of_equal_hosts(2, 1, 1, {0, 3, 4, 0, 0});
  const Cost cost = cost_of(pairwise_all_gather, 2);
  const auto seconds = [&](int slices) {
    return predict({fcclCollAllGather, static_cast<double>(slices)}, Cut::per_member, cost, shape, slices);
  };
  EXPECT_DOUBLE_EQ(seconds(2).total() - seconds(1).total(), 5);
  EXPECT_DOUBLE_EQ(seconds(2).message - seconds(1).message, 9. / 5);
  EXPECT_DOUBLE_EQ(seconds(2).wire - seconds(1).wire, 16. / 5);
}

TEST(Prediction, of_many_slices_goes_at_the_pace_of_the_slower_of_wire_and_host) {
  const Request request{fcclCollReduceScatter, 1e8};
  const Cost cost = cost_of(pairwise_reduce_scatter, 2);
  Shape shape = Shape::of_equal_hosts(2, 1, 1, kConstants);
  const double wire = 1e8 * 1e-8;
  EXPECT_NEAR(predict(request, Cut::per_member, cost, shape, 64).total(), wire, 0.02 * wire);
  shape.constants.host_byte = 1e-7;
  const double host = 2e8 * 1e-7;
  EXPECT_NEAR(predict(request, Cut::per_member, cost, shape, 64).total(), host, 0.04 * host);
}

TEST(Prediction, of_a_long_broadcast_down_a_chain_is_one_crossing) {
  const double wire = 1e8 * 1e-8;
  const Cost cost = cost_of(chain_broadcast, 4);
  const Shape shape = Shape::of_equal_hosts(4, 1, 1, kConstants);
  EXPECT_NEAR(predict({fcclCollBroadcast, 1e8}, Cut::whole, cost, shape, 64).total(), wire, 0.06 * wire);
}

// There are three ranks on one host and one on each of two others, so the only column carries three blocks of the first host.
TEST(Prediction, of_unequal_hosts_is_that_of_the_busiest_column) {
  const Shape shape{3, 5, 3, 1, 1, kConstants};
  const Time time = predict({fcclCollAllGather, 1000}, Cut::per_member, cost_of(pairwise_all_gather, 3), shape, 1);
  EXPECT_NEAR(time.wire, 2 * 3 * 1000 * 1e-8, 1e-7);
  EXPECT_DOUBLE_EQ(time.host, 5 * 1000 * 1e-10 / 2);
}

// One of two columns carries two of a host's three blocks, so the host's wire takes as long as for four.
TEST(Prediction, of_columns_that_do_not_divide_a_host_counts_the_fuller_one) {
  const Shape shape{2, 5, 3, 2, 2, kConstants};
  const Time time = predict({fcclCollReduceScatter, 1000}, Cut::per_member, cost_of(pairwise_reduce_scatter, 2), shape, 1);
  EXPECT_DOUBLE_EQ(time.wire, 2 * 1000 * 1e-8);
  const double added = 2 * 2 * 1000 * 1e-10;  // two partials of two blocks
  EXPECT_DOUBLE_EQ(time.host, 5 * 1000 * 1e-10 + added);
}

// Each of a host's two ranks has a block for both ranks of each other host.
TEST(Prediction, of_an_exchange_counts_a_block_for_each_pair_of_ranks) {
  const Shape shape = Shape::of_equal_hosts(3, 2, 1, kConstants);
  const Time time = predict({fcclCollAlltoAll, 1000}, Cut::per_member, cost_of(pairwise_all_to_all, 3), shape, 1);
  EXPECT_NEAR(time.wire, 2 * 4 * 1000 * 1e-8, 1e-7);
}

TEST(Prediction, of_content_that_travels_with_the_entries_is_their_rounds) {
  CostConstants constants = kConstants;
  constants.message = 1e-5;
  const auto of = [&](fcclColl_t collective, double bytes, int hosts) {
    return predict_with_entries({collective, bytes}, Shape::of_equal_hosts(hosts, 1, 1, constants)).value();
  };
  EXPECT_EQ(of(fcclCollAllReduce, 8, 8).rounds, 3);
  EXPECT_DOUBLE_EQ(of(fcclCollAllReduce, 8, 8).time.latency, 3e-5);
  EXPECT_DOUBLE_EQ(of(fcclCollAllReduce, 8, 8).time.message, 3e-5);
  EXPECT_NEAR(of(fcclCollAllReduce, 8, 8).time.wire, 7 * 8 * 1e-8, 1e-12);
  // Data that differs for each of the others travels more than once.
  for (const fcclColl_t collective : {fcclCollReduceScatter, fcclCollAlltoAll}) {
    EXPECT_EQ(of(collective, 8, 8).rounds, 3);
    EXPECT_NEAR(of(collective, 8, 8).time.wire, (7 + 5) * 8 * 1e-8, 1e-12);
  }
  EXPECT_EQ(of(fcclCollAlltoAllV, 8, 8).rounds, 1);
  // Each of few members tells all others at once, and so does each whose messages would not hold what it passes on.
  EXPECT_EQ(of(fcclCollAllReduce, 8, 3).rounds, 1);
  EXPECT_EQ(of(fcclCollAllReduce, 4096, 8).rounds, 3);
  EXPECT_EQ(of(fcclCollAllReduce, 4096, 16).rounds, 1);
  EXPECT_GT(of(fcclCollAllReduce, 4096, 16).time.wire, 8 * 4096 * 1e-8);
}

TEST(Prediction, with_entries_is_of_what_one_column_gives_to_another_if_that_fits) {
  const Shape shape = Shape::of_equal_hosts(4, 2, 1, kConstants);
  EXPECT_TRUE(predict_with_entries({fcclCollAllReduce, 8192}, shape));
  EXPECT_FALSE(predict_with_entries({fcclCollAllReduce, 8194}, shape));
  EXPECT_TRUE(predict_with_entries({fcclCollAllGather, 4096}, shape));
  EXPECT_FALSE(predict_with_entries({fcclCollAllGather, 4097}, shape));
  EXPECT_TRUE(predict_with_entries({fcclCollAlltoAll, 2048}, shape));
  EXPECT_FALSE(predict_with_entries({fcclCollAlltoAll, 2049}, shape));
  EXPECT_FALSE(predict_with_entries({fcclCollAllReduce, 8}, Shape::of_equal_hosts(1, 2, 1, kConstants)));
}

// So the entries add no latency to a plan.
TEST(Prediction, of_every_plan_ends_no_earlier_than_all_hosts_are_known_to_have_made_the_call) {
  for (const double message : {0.0, 1e-6, 1e-5, 1e-4})
    for (int hosts : {2, 3, 4, 5, 8, 31, 64, 512})
      for (size_t i = 0; i < kCatalog<Price>.size(); ++i) {
        const auto& algorithm = kCatalog<Price>[i];
        CostConstants constants = kConstants;
        constants.message = message;
        const Shape shape = Shape::of_equal_hosts(hosts, 1, 1, constants);
        const EntryRounds told =
            EntryRounds::of_call(hosts, row_of(algorithm.collective), std::nullopt, payload_bytes_of(hosts), constants);
        EXPECT_GE(predict({algorithm.collective, 0}, algorithm.cut, price_catalog(hosts)[i], shape, 1).total() * (1 + 1e-12),
                  told.seconds(constants))
            << algorithm.name << " of " << hosts;
      }
}

TEST(Prediction, of_the_entries_beside_a_plan_is_their_messages) {
  CostConstants constants = kConstants;
  const auto of = [&](int hosts) {
    return seconds_of_entries(fcclCollAllReduce, Shape::of_equal_hosts(hosts, 8, 8, constants)) / constants.message;
  };
  EXPECT_DOUBLE_EQ(of(1), 0);
  EXPECT_DOUBLE_EQ(of(3), 2);
  EXPECT_DOUBLE_EQ(of(16), 15);  // by dissemination 4 (10 + 1) us, to each 10 + 15 us
  constants.message = 1e-5;
  EXPECT_DOUBLE_EQ(of(16), 4);
}

constexpr CostConstants kWireOnly{.latency = 0, .message = 0, .wire_byte = 1, .added_byte = 0, .host_byte = 0};

TEST(WireMinimum, is_what_the_pairwise_algorithms_move) {
  for (int hosts : {1, 2, 3, 8, 33}) {
    const int ranks = 3;
    const double bytes = 120;
    const Shape shape = Shape::of_equal_hosts(hosts, ranks, 1, kWireOnly);
    const auto port_bytes = [&](void (*tell)(Group, Price&), double chunk) { return cost_of(tell, hosts).port.chunks * chunk; };
    EXPECT_DOUBLE_EQ(port_bytes(pairwise_all_gather, ranks * bytes), wire_minimum({fcclCollAllGather, bytes}, shape));
    EXPECT_DOUBLE_EQ(port_bytes(pairwise_reduce_scatter, ranks * bytes), wire_minimum({fcclCollReduceScatter, bytes}, shape));
    EXPECT_DOUBLE_EQ(port_bytes(pairwise_all_to_all, ranks * ranks * bytes), wire_minimum({fcclCollAlltoAll, bytes}, shape));
    EXPECT_DOUBLE_EQ(port_bytes(pairwise_all_reduce, bytes / hosts), wire_minimum({fcclCollAllReduce, bytes}, shape));
    EXPECT_DOUBLE_EQ(port_bytes(chain_broadcast, bytes), wire_minimum({fcclCollBroadcast, bytes}, shape));
  }
}

TEST(WireMinimum, is_what_the_smallest_host_receives_of_the_others) {
  const Shape shape{3, 6, 3, 1, 1, kWireOnly};
  EXPECT_DOUBLE_EQ(wire_minimum({fcclCollAllGather, 10}, shape), 50);
  EXPECT_DOUBLE_EQ(wire_minimum({fcclCollReduceScatter, 10}, shape), 50);
  EXPECT_DOUBLE_EQ(wire_minimum({fcclCollGather, 10}, shape), 30);
}

TEST(WireMinimum, is_reached_by_no_algorithm_from_below) {
  for (int hosts : {2, 3, 8, 33})
    for (const Shape& shape : {Shape::of_equal_hosts(hosts, 4, 1, kWireOnly), Shape{hosts, hosts + 3, 4, 1, 1, kWireOnly},
                               Shape{hosts, 3 * hosts - 1, 3, 2, 1, kWireOnly}})
      for (size_t i = 0; i < kCatalog<Price>.size(); ++i) {
        const auto& algorithm = kCatalog<Price>[i];
        const Request request{algorithm.collective, 1e6};
        const double moved = predict(request, algorithm.cut, price_catalog(hosts)[i], shape, 1).wire;
        EXPECT_GE(moved * (1 + 1e-12), wire_minimum(request, shape)) << algorithm.name << " of " << hosts;
      }
}

}  // namespace
}  // namespace fccl::core::plan
