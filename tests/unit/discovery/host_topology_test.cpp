// Tests discovery of this machine, and of a machine that hwloc reads from a file.
#include "discovery/host_topology.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "discovery/sys_devices.h"
#include "topology/text.h"

namespace fccl::core {
namespace {

// Reads the kernel's flags of an interface in another way than discovery does.
int flags_of(const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  const int status = ::ioctl(socket, SIOCGIFFLAGS, &request);
  ::close(socket);
  return status == 0 ? request.ifr_flags : 0;
}

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

TEST(DiscoverHost, names_the_interfaces_that_are_up_save_the_loopback) {
  const auto host = discover_host();
  ASSERT_TRUE(host) << host.error().message;
  std::set<std::string> named, up;
  for (const Nic& nic : host->nics) named.insert(nic.name);
  const std::unique_ptr<struct if_nameindex, decltype(&if_freenameindex)> all(if_nameindex(), if_freenameindex);
  for (const struct if_nameindex* each = all.get(); each->if_index != 0; ++each)
    if ((flags_of(each->if_name) & (IFF_UP | IFF_LOOPBACK)) == IFF_UP) up.insert(each->if_name);
  EXPECT_TRUE(std::includes(named.begin(), named.end(), up.begin(), up.end())) << to_text(*Topology::of({*host}));
  EXPECT_FALSE(named.contains("lo"));
}

TEST(DiscoverHost, knows_the_pci_address_of_an_interface_of_a_pci_device) {
  const auto host = discover_host();
  ASSERT_TRUE(host) << host.error().message;
  for (const Nic& nic : host->nics) {
    std::error_code none;
    const auto device = std::filesystem::canonical("/sys/class/net/" + nic.name + "/device", none);
    // A device of virtio stands below the PCI device.
    auto address = parse_pci_address(device.filename().string());
    if (!address) address = parse_pci_address(device.parent_path().filename().string());
    if (!address) continue;
    EXPECT_EQ(nic.place.pci, address) << nic.name;
  }
}

// hwloc reads a file here; interfaces are still those of this machine.
class DescribedMachine : public ::testing::Test {
 protected:
  void SetUp() override { setenv("HWLOC_XMLFILE", FCCL_TEST_TOPOLOGIES "/two_switches.hwloc.xml", 1); }
  void TearDown() override { unsetenv("HWLOC_XMLFILE"); }
};

TEST_F(DescribedMachine, has_its_gpus_and_rdma_devices_at_their_places) {
  auto host = discover_host();
  ASSERT_TRUE(host) << host.error().message;
  host->name = "described";
  std::erase_if(host->nics, [](const Nic& nic) { return !nic.name.starts_with("rdmap"); });
  EXPECT_EQ(to_text(*Topology::of({*host})), R"(fccl topology 1
host described
  nic rdmap16s27 pci 0000:10:1b.0 numa 0 under 0000:00:01.0
  nic rdmap144s27 pci 0000:90:1b.0 numa 1 under 0000:80:01.0
  gpu 0 pci 0000:10:1c.0 numa 0 under 0000:00:01.0
  gpu 1 pci 0000:10:1d.0 numa 0 under 0000:00:01.0
  gpu 2 pci 0000:90:1c.0 numa 1 under 0000:80:01.0
  gpu 3 pci 0000:90:1d.0 numa 1 under 0000:80:01.0
)");
}

// A machine that hides its devices, as many containers do.
TEST(DiscoverHost, gives_interfaces_no_place_where_hwloc_sees_no_devices) {
  setenv("HWLOC_COMPONENTS", "no_os,stop", 1);
  const auto host = discover_host();
  unsetenv("HWLOC_COMPONENTS");
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_TRUE(host->gpus.empty());
  for (const Nic& nic : host->nics) EXPECT_EQ(nic.place, Place{}) << nic.name;
}

TEST(DiscoverHost, in_a_network_namespace_of_its_own_names_its_interfaces_only) {
  std::optional<Result<Host>> host;
  bool alone = false;
  std::thread([&] {
    alone = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 || unshare(CLONE_NEWNET) == 0;
    if (alone) host = discover_host();
  }).join();
  if (!alone) GTEST_SKIP() << "this process may not make a network namespace";
  ASSERT_TRUE(*host) << host->error().message;
  for (const Nic& nic : (*host)->nics)
    EXPECT_EQ(if_nametoindex(nic.name.c_str()), 0u) << nic.name << " is of another namespace";
}

// Transports between hosts find places without hwloc.
TEST(DiscoverHost, finds_the_places_that_sys_tells) {
  const auto host = discover_host();
  ASSERT_TRUE(host) << host.error().message;
  const SysDevices sys;
  for (const Nic& nic : host->nics)
    if (nic.place.pci) {
      EXPECT_EQ(sys.place_of(*nic.place.pci), nic.place) << nic.name;
    }
}

}  // namespace
}  // namespace fccl::core
