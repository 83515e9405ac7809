// Discovery: this machine's host, and one that hwloc is made to see.
#include "system/host_topology.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "topology/rails.h"
#include "topology/text.h"

namespace fccl {
namespace {

TEST(DiscoverHost, finds_a_host_that_is_a_topology) {
  const auto host = discover_host();
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_TRUE(host->ranks.empty());
  const auto topology = Topology::of({*host});
  ASSERT_TRUE(topology) << topology.error().message;
  const auto again = parse_topology(to_text(*topology));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *topology);
}

TEST(DiscoverHost, finds_the_same_twice) { EXPECT_EQ(*discover_host(), *discover_host()); }

TEST(DiscoverHost, names_no_loopback) {
  const auto host = discover_host();
  ASSERT_TRUE(host) << host.error().message;
  for (const Nic& nic : host->nics) EXPECT_NE(nic.name, "lo");
}

}  // namespace
}  // namespace fccl
