// Tests the shape of a topology.
#include "plan/shape.h"

#include <gtest/gtest.h>

#include "topology/text.h"

namespace fccl::core::plan {
namespace {

constexpr CostConstants kConstantsOfHosts{
    .latency = 1e-5, .message = 1e-6, .wire_byte = 1e-8, .added_byte = 1e-10, .host_byte = 1e-10};

Shape shape_of_text(const std::string& hosts) {
  const auto topology = parse_topology("fccl topology 1\n" + hosts);
  EXPECT_TRUE(topology) << topology.error().message;
  return shape_of(*topology, kConstantsOfHosts);
}

TEST(ShapeOf, equal_hosts_has_a_column_for_each_rank) {
  const Shape shape = shape_of_text("host a\n nic x\n nic y\n rank 0\n rank 1\nhost b\n nic x\n nic y\n rank 2\n rank 3\n");
  EXPECT_EQ(shape.hosts, 2);
  EXPECT_EQ(shape.ranks, 4);
  EXPECT_EQ(shape.most_ranks, 2);
  EXPECT_EQ(shape.columns, 2);
  EXPECT_EQ(shape.rails, 2);
  EXPECT_EQ(shape.carried_blocks(), 1);
}

TEST(ShapeOf, unequal_hosts_gives_their_nics_to_the_columns_alone) {
  const Shape shape =
      shape_of_text("host a\n nic x\n nic y\n nic z\n rank 0\n rank 1\n rank 2\nhost b\n nic x\n nic y\n rank 3\n");
  EXPECT_EQ(shape.ranks, 4);
  EXPECT_EQ(shape.most_ranks, 3);
  EXPECT_EQ(shape.columns, 1);
  EXPECT_EQ(shape.rails, 2);  // of host b; the one column of host a has three
  EXPECT_EQ(shape.carried_blocks(), 3);
}

TEST(ShapeOf, ranks_that_share_a_nic_counts_it_once) {
  const Shape shape = shape_of_text("host a\n nic x\n rank 0\n rank 1\nhost b\n nic x\n rank 2\n rank 3\n");
  EXPECT_EQ(shape.columns, 2);
  EXPECT_EQ(shape.rails, 1);
}

TEST(SlowestNic, is_not_known_where_one_speed_is_not) {
  const auto speed_of = [](const std::string& nics) {
    return slowest_nic(*parse_topology("fccl topology 1\nhost a\n" + nics));
  };
  EXPECT_EQ(speed_of("nic x speed 100Gbit/s\nnic y speed 25Gbit/s\n"), 25'000);
  EXPECT_EQ(speed_of("nic x speed 100Gbit/s\nnic y\n"), 0);
  EXPECT_EQ(speed_of(""), 0);
}

}  // namespace
}  // namespace fccl::core::plan
