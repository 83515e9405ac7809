// Tests the text form of topologies: a written text reads back, and a refusal names the line.
#include "topology/text.h"

#include <gtest/gtest.h>

#include "descriptions.h"

namespace fccl::core {
namespace {

constexpr const char* kTwoHosts = R"(fccl topology 1
host a
  nic eth0 speed 2.5Gbit/s
  nic rdmap79s0 speed 100Gbit/s pci 0000:4f:00.0 numa 0 under 0000:00:01.0/0000:4d:00.0
  gpu 0 pci 0000:53:00.0 numa 0 under 0000:00:01.0/0000:4e:00.0
  rank 0 gpu 0
  rank 2 numa 1
host b
  nic eth0
  rank 1
)";

void expect_refused(const std::string& lines, const std::string& said) {
  const auto topology = parse_topology("fccl topology 1\n" + lines);
  ASSERT_FALSE(topology) << lines;
  EXPECT_EQ(topology.error().code, fcclInvalidUsage);
  EXPECT_NE(topology.error().message.find(said), std::string::npos) << topology.error().message;
}

TEST(TopologyText, comes_back_as_it_was_written) {
  const Topology topology = topology_of(kTwoHosts);
  EXPECT_EQ(to_text(topology), kTwoHosts);
  EXPECT_EQ(topology_of(to_text(topology)), topology);
}

TEST(TopologyText, says_what_it_seems_to_say) {
  const Topology topology = topology_of(kTwoHosts);
  ASSERT_EQ(topology.hosts().size(), 2u);
  const Nic nic{"rdmap79s0", 100000, {{{0, 0x4f, 0, 0}}, 0, {{0, 0, 1, 0}, {0, 0x4d, 0, 0}}}};
  EXPECT_EQ(topology.hosts()[0].nics[1], nic);
  EXPECT_EQ(topology.hosts()[0].nics[0].megabits, 2500);
  EXPECT_EQ(topology.hosts()[0].ranks[1], (Rank{2, {}, 1}));
  EXPECT_EQ(topology.hosts()[1].nics[0].megabits, 0);
  EXPECT_EQ(distance(topology.hosts()[0].gpus[0].place, nic.place), Distance::same_root);
}

TEST(TopologyText, may_have_comments_empty_lines_and_fields_in_any_order) {
  EXPECT_EQ(to_text(topology_of("# head\r\n\nfccl topology 1\r\n  # on\n\nhost\ta\nnic e numa 1 speed 1.500Gbit/s\r\n")),
            "fccl topology 1\nhost a\n  nic e speed 1.5Gbit/s numa 1\n");
}

TEST(TopologyText, of_every_machine_described_comes_back) {
  for (const char* name : kDescriptions) {
    const std::string text = description_of(name);
    const size_t headline = text.find("\nfccl topology 1\n");
    ASSERT_NE(headline, std::string::npos) << name;
    EXPECT_EQ(to_text(topology_of(text)), text.substr(headline + 1)) << name;
  }
}

TEST(TopologyText, is_refused_with_the_line_what_it_is_and_what_was_expected) {
  expect_refused("host a\n  nic eth0 speed fast\n",
                 R"(line 3 of the topology is "  nic eth0 speed fast", but expected was one speed such as "100Gbit/s")");
  expect_refused("host a b\n", R"(line 2 of the topology is "host a b", but expected was "host NAME")");
  expect_refused("host a\nswitch x\n", "expected was a line that begins with host, nic, gpu or rank");
  expect_refused("nic eth0\n", R"(expected was "host NAME" before its NICs)");
  expect_refused("host a\n  nic e color red\n", "expected was the fields speed, pci, numa, under");
  expect_refused("host a\n  rank 0 speed 1Gbit/s\n", "expected was the fields gpu or numa");
  expect_refused("host a\n  nic e numa 1 numa 1\n", "expected was one number from 0 to 4095 after numa");
  expect_refused("host a\n  nic e under 0000:00:01.0/\n", "after under the PCI bridges above, at most 16");
  expect_refused("host a\n  rank -1\n", "\"rank NUMBER\" below");
  expect_refused("host a\n  rank 99999999999999999999\n", "\"rank NUMBER\" below");
  expect_refused("host a\n  nic e speed 1.0001Gbit/s\n", "at most three decimals");
  expect_refused("host a\n  rank 1\n", "host a has rank 1, but the ranks of all hosts are 0 to 0");
}

TEST(TopologyText, is_refused_where_it_is_something_else) {
  const auto refused = parse_topology("<system version=\"1\">\n");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("expected was \"fccl topology 1\", the first line"), std::string::npos);
  EXPECT_FALSE(parse_topology(""));
  EXPECT_FALSE(parse_topology("# nothing\n"));
  EXPECT_FALSE(parse_topology(std::string_view("fccl topology 1\0host", 20)));
}

TEST(TopologyText, shows_no_control_characters_and_no_endless_lines_in_messages) {
  expect_refused("\x1b[31m" + std::string(100000, 'x') + "\n", "is \"?[31m" + std::string(55, 'x') + "...\"");
}

TEST(TopologyHash, differs_where_the_text_does) {
  const Topology topology = topology_of(kTwoHosts);
  EXPECT_EQ(hash_of(topology), hash_of(topology_of(to_text(topology))));
  std::string other = kTwoHosts;
  other.replace(other.find("2.5"), 3, "2.6");
  EXPECT_NE(hash_of(topology), hash_of(topology_of(other)));
}

TEST(FirstDifference, names_the_line_and_both_ranks) {
  std::string other = kTwoHosts;
  other.replace(other.find("2.5"), 3, "25");
  EXPECT_EQ(first_difference(0, kTwoHosts, 7, other),
            "line 3 is \"  nic eth0 speed 2.5Gbit/s\" on rank 0, but \"  nic eth0 speed 25Gbit/s\" on rank 7");
}

TEST(FirstDifference, says_what_is_missing) {
  EXPECT_EQ(first_difference(1, "a\nb\n", 2, "a\n"), "line 2 is \"b\" on rank 1, but missing on rank 2");
  EXPECT_EQ(first_difference(1, "a\n", 2, "a\n\n"), "line 2 is missing on rank 1, but \"\" on rank 2");
}

TEST(FirstDifference, is_empty_for_equal_texts) { EXPECT_EQ(first_difference(0, kTwoHosts, 1, kTwoHosts), ""); }

}  // namespace
}  // namespace fccl::core
