// Tests the choice of an algorithm, and its explanation.
#include "plan/choose.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/catalog.h"
#include "plan/ring.h"

namespace fccl::core::plan {
namespace {

// Costs in the order of an EFA network card, and of a shaped link.
constexpr CostConstants kFast{
    .latency = 1.5e-5, .message = 1.25e-6, .wire_byte = 8e-11, .added_byte = 5e-12, .host_byte = 2.5e-12};
constexpr CostConstants kSlow{.latency = 5e-6, .message = 1e-6, .wire_byte = 8.4e-9, .added_byte = 1e-10, .host_byte = 1e-10};

std::string chosen(const Chooser& chooser, fcclColl_t collective, double bytes) {
  return kCatalog<Price>[chooser.choose({collective, bytes}).algorithm].name;
}

TEST(Choice, of_an_all_gather_is_bruck_for_small_and_pairwise_for_large_messages) {
  const Chooser chooser(Shape::of_equal_hosts(256, 8, 32, kFast));
  EXPECT_EQ(chosen(chooser, fcclCollAllGather, 8), "bruck");
  EXPECT_EQ(chosen(chooser, fcclCollAllGather, 64 << 20), "pairwise");
}

TEST(Choice, of_a_broadcast_is_a_tree_for_small_and_a_chain_or_a_scatter_for_large_messages) {
  EXPECT_EQ(chosen(Chooser(Shape::of_equal_hosts(64, 8, 32, kFast)), fcclCollBroadcast, 8), "tree");
  EXPECT_EQ(chosen(Chooser(Shape::of_equal_hosts(4, 8, 32, kFast)), fcclCollBroadcast, 64 << 20), "chain");
  EXPECT_EQ(chosen(Chooser(Shape::of_equal_hosts(64, 8, 32, kFast)), fcclCollBroadcast, 64 << 20), "scattered");
}

TEST(Choice, can_be_made_for_the_collectives_that_are_said_to_have_an_algorithm_and_for_no_other) {
  const Chooser chooser(Shape::of_equal_hosts(2, 2, 1, kFast));
  EXPECT_TRUE(has_algorithm(fcclCollAlltoAll));
  EXPECT_FALSE(has_algorithm(fcclCollAlltoAllV));  // it uses the algorithms of AlltoAll
  for (int i = 0; i < fcclNumColls; ++i) {
    const auto collective = static_cast<fcclColl_t>(i);
    if (has_algorithm(collective))
      EXPECT_EQ(kCatalog<Price>[chooser.choose({collective, 8}).algorithm].collective, collective);
    else
      EXPECT_DEATH(chooser.choose({collective, 8}), "has a wire algorithm");
  }
}

TEST(Choice, gives_every_algorithm_of_the_catalog_its_place) {
  std::set<int> taken;
  for (int hosts : {2, 4, 16, 64, 256, 1024})
    for (const CostConstants& constants : {kFast, kSlow}) {
      const Chooser chooser(Shape::of_equal_hosts(hosts, 8, 8, constants));
      for (const auto& algorithm : kCatalog<Price>)
        for (double bytes = 8; bytes <= 1 << 30; bytes *= 4)
          taken.insert(chooser.choose({algorithm.collective, bytes}).algorithm);
    }
  for (size_t i = 0; i < kCatalog<Price>.size(); ++i)
    EXPECT_TRUE(taken.contains(static_cast<int>(i))) << kCatalog<Price>[i].name << " for " << kCatalog<Price>[i].collective;
}

TEST(Choice, cuts_a_long_message_into_slices_and_a_short_one_not) {
  const Chooser chooser(Shape::of_equal_hosts(2, 2, 1, kSlow));
  EXPECT_EQ(chooser.choose({fcclCollAllGather, 64}).slices, 1);
  EXPECT_GT(chooser.choose({fcclCollAllGather, 64 << 20}).slices, 4);
}

TEST(Choice, is_never_dearer_than_the_ring) {
  for (int hosts : {2, 5, 32, 512})
    for (double bytes = 8; bytes <= 1 << 30; bytes *= 8) {
      const Shape shape = Shape::of_equal_hosts(hosts, 8, 32, kFast);
      Price ring({hosts});
      ring_all_gather({hosts}, ring);
      const Request request{fcclCollAllGather, bytes};
      const double chosen = Chooser(shape).choose(request).time.total() - seconds_of_entries(request.collective, shape);
      for (int slices = 1; slices <= 64; slices *= 2)
        EXPECT_LE(chosen, predict(request, Cut::per_member, ring.cost(), shape, slices).total() * (1 + 1e-12));
    }
}

// They go ahead of every plan alike, so they decide nothing.
TEST(Choice, counts_the_messages_of_the_entries_in_the_time_of_every_plan) {
  for (const int hosts : {2, 3, 8, 512})
    for (const CostConstants& constants : {kFast, kSlow}) {
      const Shape shape = Shape::of_equal_hosts(hosts, 8, 8, constants);
      const Chooser chooser(shape);
      for (size_t i = 0; i < kCatalog<Price>.size(); ++i) {
        const auto& algorithm = kCatalog<Price>[i];
        const Request request{algorithm.collective, 1 << 20};
        const Choice choice = chooser.best_slices(static_cast<int>(i), request);
        const Time alone = predict(request, algorithm.cut, price_catalog(hosts)[i], shape, choice.slices);
        const double entries = seconds_of_entries(algorithm.collective, shape);
        EXPECT_DOUBLE_EQ(choice.time.message, alone.message + entries) << algorithm.name << " of " << hosts;
        EXPECT_DOUBLE_EQ(choice.time.latency, alone.latency) << algorithm.name << " of " << hosts;
      }
    }
}

TEST(Explanation, lists_the_algorithms_and_marks_the_chosen_one) {
  const CostConstants constants{.latency = 1e-5, .message = 1e-6, .wire_byte = 1e-9, .added_byte = 0, .host_byte = 1e-9};
  const Chooser chooser(Shape::of_equal_hosts(3, 2, 1, constants));
  EXPECT_EQ(chooser.explain({fcclCollAllGather, 8192}), R"(AllGather of 8 KiB on 3 hosts x 2 ranks, 1 rail per host
at least 32 KiB through a host's interfaces in one direction, which take 32.8 us

    algorithm  rounds slices  predicted us      latency     messages         wire         host
 -> pairwise        1      4          73.7         10.0          4.0         21.6         38.0
    bruck           2      8          87.8         20.0          7.7         19.4         40.7
)");
}

TEST(Explanation, marks_the_entries_where_they_carry_the_content) {
  const CostConstants constants{.latency = 1e-5, .message = 3e-5, .wire_byte = 1e-9, .added_byte = 0, .host_byte = 1e-9};
  const Chooser chooser(Shape::of_equal_hosts(5, 1, 1, constants));
  const std::string text = chooser.explain({fcclCollAllReduce, 8});
  EXPECT_NE(text.find("\n -> entries         3      1         120.0         30.0         90.0"), std::string::npos) << text;
  EXPECT_EQ(text.find("-> pairwise"), std::string::npos) << text;
}

TEST(Explanation, says_how_hosts_differ) {
  const Shape shape{3, 9, 4, 2, 1, kFast};
  const std::string text = Chooser(shape).explain({fcclCollAllGather, 1024});
  EXPECT_NE(text.find("on 3 hosts of at most 4 ranks, 9 in all, in 2 columns, 1 rail per host\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace fccl::core::plan
