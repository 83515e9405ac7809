// Which NICs the columns of a host use: of the machines described, and of hosts whose ranks may use different ones.
#include "creation/column_nics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "unit/topology/descriptions.h"

namespace fccl::core {
namespace {

using Names = std::vector<std::string>;

std::string told(const std::vector<Nic>& nics, std::optional<int> numa = {}) {
  const auto text = describe_column(nics, numa);
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

ColumnNics chosen(const std::vector<std::string>& columns) {
  auto nics = nics_of_columns(columns);
  EXPECT_TRUE(nics) << nics.error().message;
  return nics.value_or(ColumnNics{});
}

// Ranks that are bound to the NUMA nodes of the machine's GPUs, in their order.
std::vector<std::string> ranks_by_numa(const Host& machine) {
  std::vector<std::string> columns;
  for (const Rank& rank : machine.ranks) columns.push_back(told(machine.nics, place_of(machine, rank).numa));
  return columns;
}

const Nic& nic_named(const Host& host, const std::string& name) { return *std::ranges::find(host.nics, name, &Nic::name); }

std::vector<Nic> plain(const Names& names) {
  std::vector<Nic> nics;
  for (const std::string& name : names) nics.push_back({name, 0, {}});
  return nics;
}

struct Expected {
  const char* machine;
  size_t of_column;
  int different;
};

class OfMachine : public ::testing::TestWithParam<Expected> {};

TEST_P(OfMachine, columns_at_their_numa_nodes_share_all_nics_and_have_near_ones) {
  const Host host = machine(GetParam().machine);
  const ColumnNics nics = chosen(ranks_by_numa(host));
  ASSERT_EQ(nics.names.size(), 8u);
  EXPECT_EQ(nics.different, GetParam().different);
  std::set<std::string> used;
  for (size_t column = 0; column < nics.names.size(); ++column) {
    EXPECT_EQ(nics.names[column].size(), GetParam().of_column);
    for (const std::string& name : nics.names[column]) {
      used.insert(name);
      EXPECT_EQ(nic_named(host, name).place.numa, place_of(host, host.ranks[column]).numa) << column;
    }
  }
  EXPECT_EQ(used.size(), host.nics.size()) << "every NIC carries something";
}

TEST_P(OfMachine, columns_that_are_bound_to_no_node_share_all_nics_too) {
  const Host host = machine(GetParam().machine);
  const ColumnNics nics = chosen(std::vector<std::string>(8, told(host.nics)));
  EXPECT_EQ(nics.different, GetParam().different);
  for (const Names& names : nics.names) EXPECT_EQ(names.size(), GetParam().of_column);
}

INSTANTIATE_TEST_SUITE_P(Of, OfMachine,
                         ::testing::Values(Expected{"p4d.24xlarge", 1, 4}, Expected{"p5.48xlarge", 4, 32},
                                           Expected{"p5en.48xlarge", 2, 16}, Expected{"p6-b200.48xlarge", 1, 8}),
                         [](const auto& expected) {
                           std::string name = expected.param.machine;
                           std::ranges::replace_if(name, [](char c) { return c == '.' || c == '-'; }, '_');
                           return name;
                         });

TEST(NicsOfColumns, without_a_column_to_use_them_do_not_count) {
  // The third of the host's ranks has no column.
  const ColumnNics nics = chosen({told(plain({"a", "b", "c"})), told(plain({"a", "b", "c"}))});
  EXPECT_EQ(nics.names, (std::vector<Names>{{"a", "c"}, {"b"}}));
  EXPECT_EQ(nics.different, 3);
}

TEST(NicsOfColumns, that_may_use_different_ones_are_each_their_own) {
  const ColumnNics nics = chosen({told(plain({"a"})), told(plain({"b"})), told(plain({"a"}))});
  EXPECT_EQ(nics.names, (std::vector<Names>{{"a"}, {"b"}, {"a"}}));
  EXPECT_EQ(nics.different, 2);
}

TEST(NicsOfColumns, keep_the_order_that_they_were_told_in) {
  EXPECT_EQ(chosen({told(plain({"eth1", "eth0"}))}).names, (std::vector<Names>{{"eth1", "eth0"}}));
}

TEST(NicsOfColumns, are_no_more_than_a_lane_has_rails) {
  Names names;
  for (int i = 0; i < 40; ++i) names.push_back("nic" + std::to_string(i));
  const ColumnNics nics = chosen({told(plain(names))});
  EXPECT_EQ(nics.names.front().size(), 32u);
  EXPECT_EQ(nics.different, 32);
}

TEST(NicsOfColumns, of_a_text_that_no_column_tells_are_an_error) {
  for (const char* text : {"", "fccl topology 1\n", "fccl topology 1\nhost a\n  rank 0\n", "fccl topology 1\nhost a\n  nic b\n",
                           "fccl topology 1\nhost a\n  nic b\n  rank 0\n  rank 1\n",
                           "fccl topology 1\nhost a\n  nic b\nhost c\n  nic d\n  rank 0\n"}) {
    const auto nics = nics_of_columns({text});
    ASSERT_FALSE(nics) << text;
    EXPECT_EQ(nics.error().code, fcclInternalError);
  }
}

TEST(DescribeColumn, refuses_nics_that_cannot_be_told_apart) { EXPECT_FALSE(describe_column(plain({"a", "a"}), {})); }

}  // namespace
}  // namespace fccl::core
