// Tests of topologies: the places of ranks, and invalid topologies.
#include "topology/topology.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

Host host_with(const std::string& name, const std::vector<int>& ranks) {
  Host host{name, {{"eth0", 10000, {}}}, {{0, {.numa = 1}}}, {}};
  for (const int rank : ranks) host.ranks.push_back({rank, {}, {}});
  return host;
}

void expect_refused(std::vector<Host> hosts, const std::string& said) {
  const auto topology = Topology::of(std::move(hosts));
  ASSERT_FALSE(topology) << said;
  EXPECT_EQ(topology.error().code, fcclInvalidUsage);
  EXPECT_NE(topology.error().message.find(said), std::string::npos) << topology.error().message;
}

TEST(Topology, knows_host_and_local_rank_of_each_rank_also_where_hosts_are_uneven_and_interleaved) {
  const auto topology = Topology::of({host_with("a", {0, 2, 5}), host_with("b", {1}), host_with("c", {3, 4})});
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->ranks(), 6);
  const int hosts[] = {0, 1, 0, 2, 2, 0}, local_ranks[] = {0, 0, 1, 0, 1, 2};
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(topology->host_of(rank), hosts[rank]) << rank;
    EXPECT_EQ(topology->local_rank_of(rank), local_ranks[rank]) << rank;
  }
}

TEST(Topology, of_a_machine_has_no_ranks) { EXPECT_EQ(Topology::of({host_with("a", {})})->ranks(), 0); }

TEST(Topology, refuses_ranks_that_do_not_count_from_0_once_each_upwards) {
  expect_refused({host_with("a", {0, 2})}, "host a has rank 2, but the ranks of all hosts are 0 to 1");
  expect_refused({host_with("a", {0, -1})}, "has rank -1");
  expect_refused({host_with("a", {1, 0})}, "has rank 0 after rank 1");
  expect_refused({host_with("a", {0, 1}), host_with("b", {1})}, "host b has rank 1, which is on another host too");
  expect_refused({host_with("a", {1}), host_with("b", {0})}, "host b comes after one whose first rank is 1");
}

TEST(Topology, refuses_names_that_would_not_be_one_word_of_a_line) {
  expect_refused({host_with("", {0})}, "has a name that is empty");
  expect_refused({host_with("a b", {0})}, "has a name");
  Host host = host_with("a", {0});
  host.nics.push_back({"eth\n0", 0, {}});
  expect_refused({host}, "has a NIC whose name");
}

TEST(Topology, refuses_devices_that_cannot_be_told_apart) {
  Host host = host_with("a", {0});
  host.nics.push_back(host.nics[0]);
  expect_refused({host}, "host a has two NICs named eth0");
  host = host_with("a", {0});
  host.gpus.push_back(host.gpus[0]);
  expect_refused({host}, "has a GPU with the number 0");
}

TEST(Topology, refuses_a_rank_at_a_gpu_that_is_not_there_or_at_two_places) {
  Host host = host_with("a", {0});
  host.ranks[0].gpu = 1;
  expect_refused({host}, "has no GPU 1 for rank 0");
  host.ranks[0] = {0, 0, 0};
  expect_refused({host}, "has rank 0 both at a GPU and at a NUMA node");
}

TEST(Rank, sits_where_its_gpu_does_or_at_its_numa_node) {
  Host host = host_with("a", {0});
  EXPECT_EQ(place_of(host, {0, 0, {}}).numa, 1);
  EXPECT_EQ(place_of(host, {0, {}, 7}).numa, 7);
  EXPECT_EQ(place_of(host, {0, {}, {}}), Place{});
}

}  // namespace
}  // namespace fccl::core
