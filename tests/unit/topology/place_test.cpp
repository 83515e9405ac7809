// Tests of places: PCI addresses and distances.
#include "topology/place.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

const PciAddress kPort{0, 0, 1, 0}, kSwitch{0, 0x10, 0, 0}, kOtherSwitch{0, 0x11, 0, 0};

TEST(PciAddress, is_read_as_linux_and_as_nvidia_write_it) {
  const PciAddress address{0, 0x10, 0x1b, 3};
  EXPECT_EQ(parse_pci_address("0000:10:1b.3"), address);
  EXPECT_EQ(parse_pci_address("00000000:10:1B.3"), address);
  EXPECT_EQ(to_text(address), "0000:10:1b.3");
  EXPECT_EQ(to_text(PciAddress{0x10000, 1, 2, 0}), "10000:01:02.0");
}

TEST(PciAddress, is_refused_where_a_part_is_missing_or_too_long) {
  for (const char* text : {"", "10:1b.0", "0000:10:1b", "0000:10:1b.", "0000:100:1b.0", "0000:10:1b.10", "0000:10:1b.0 ",
                           "0000:10:-1.0", "0x10:10:1b.0", "000000000:10:1b.0", ":10:1b.0", "g000:10:1b.0"})
    EXPECT_FALSE(parse_pci_address(text)) << text;
}

TEST(Distance, is_least_below_one_switch) {
  EXPECT_EQ(distance({.numa = 0, .under = {kPort, kSwitch}}, {.numa = 0, .under = {kPort, kSwitch}}), Distance::same_switch);
}

TEST(Distance, grows_by_the_root_the_numa_node_and_the_host) {
  const Place here{.numa = 0, .under = {kPort, kSwitch}};
  const Place same_root{.numa = 0, .under = {kPort, kOtherSwitch}};
  const Place same_numa{.numa = 0, .under = {{0, 0, 2, 0}}};
  const Place other_numa{.numa = 1, .under = {{0, 0x80, 2, 0}}};
  EXPECT_EQ(distance(here, same_root), Distance::same_root);
  EXPECT_EQ(distance(here, same_numa), Distance::same_numa);
  EXPECT_EQ(distance(here, other_numa), Distance::same_host);
  EXPECT_LT(Distance::same_switch, Distance::same_root);
  EXPECT_LT(Distance::same_root, Distance::same_numa);
  EXPECT_LT(Distance::same_numa, Distance::same_host);
}

TEST(Distance, is_the_longest_where_nothing_is_known) {
  EXPECT_EQ(distance({}, {}), Distance::same_host);
  EXPECT_EQ(distance({.numa = 0}, {}), Distance::same_host);
  EXPECT_EQ(distance({.numa = 0}, {.numa = 0}), Distance::same_numa);
}

TEST(Distance, has_the_name_that_nccl_gives_it) {
  EXPECT_STREQ(nccl_name_of(Distance::same_switch), "PIX");
  EXPECT_STREQ(nccl_name_of(Distance::same_root), "PXB");
  EXPECT_STREQ(nccl_name_of(Distance::same_numa), "PHB");
  EXPECT_STREQ(nccl_name_of(Distance::same_host), "SYS");
  EXPECT_STREQ(name_of(Distance::same_root), "same root");
}

}  // namespace
}  // namespace fccl::core
