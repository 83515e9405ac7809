// Tests places and speeds, read from a made-up /sys and from this machine's.
#include "discovery/sys_devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace fccl::core {
namespace {

namespace fs = std::filesystem;

// The made-up machine: two NUMA nodes of four processors each; an EFA below two switches of node 1, and a virtio interface at
// node 0.
class MadeUpSys : public ::testing::Test {
 protected:
  void SetUp() override {
    put("devices/system/node/node0/cpulist", "0-1,4-5");
    put("devices/system/node/node1/cpulist", "2-3,6-7");
    put("devices/system/node/possible", "0-1");
    put_device("devices/pci0000:80/0000:80:01.0/0000:8a:00.0/0000:8b:02.0/0000:8d:00.0", "2-3,6-7");
    put_device("devices/pci0000:00/0000:00:05.0", "0-1,4-5");
    put_device("devices/pci0000:00/0000:00:06.0", "0-7");
    put("devices/pci0000:00/0000:00:05.0/virtio2/net/lo/speed", "25000");
    put("devices/pci0000:00/0000:00:05.0/virtio2/net/lo/ifindex", "1");
    link("class/net/lo", "devices/pci0000:00/0000:00:05.0/virtio2/net/lo");
    link("devices/pci0000:00/0000:00:05.0/virtio2/net/lo/device", "devices/pci0000:00/0000:00:05.0/virtio2");
    put("class/infiniband/rdmap141s0/ports/1/rate", "100 Gb/sec (4X EDR)");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& line) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << line << '\n';
  }
  void link(const std::string& path, const std::string& target) const {
    fs::create_directories((root_ / path).parent_path());
    fs::create_directory_symlink(root_ / target, root_ / path);
  }
  void put_device(const std::string& path, const std::string& processors) const {
    put(path + "/local_cpulist", processors);
    link("bus/pci/devices/" + fs::path(path).filename().string(), path);
  }

  const fs::path root_ = ::testing::TempDir() + "sys_devices_" + std::to_string(::getpid());
  const SysDevices sys_{root_};
};

PciAddress pci(const char* text) { return *parse_pci_address(text); }

Processors processors(std::initializer_list<size_t> numbers) {
  Processors set;
  for (const size_t number : numbers) set.set(number);
  return set;
}

TEST_F(MadeUpSys, a_device_is_below_the_bridges_on_its_path_and_at_the_node_of_its_processors) {
  const Place place = sys_.place_of(pci("0000:8d:00.0"));
  EXPECT_EQ(
      place,
      (Place{.pci = pci("0000:8d:00.0"), .numa = 1, .under = {pci("0000:80:01.0"), pci("0000:8a:00.0"), pci("0000:8b:02.0")}}));
}

TEST_F(MadeUpSys, a_device_on_its_root_bus_is_below_nothing) {
  EXPECT_EQ(sys_.place_of(pci("0000:00:05.0")), (Place{.pci = pci("0000:00:05.0"), .numa = 0, .under = {}}));
}

TEST_F(MadeUpSys, a_device_that_is_near_to_all_processors_is_at_no_node) {
  EXPECT_EQ(sys_.place_of(pci("0000:00:06.0")), (Place{.pci = pci("0000:00:06.0"), .numa = {}, .under = {}}));
}

TEST_F(MadeUpSys, a_device_that_is_not_there_has_no_place) { EXPECT_EQ(sys_.place_of(pci("0000:00:07.0")), Place{}); }

TEST_F(MadeUpSys, an_interface_is_where_its_pci_device_is) {
  EXPECT_EQ(sys_.place_of_interface("lo"), sys_.place_of(pci("0000:00:05.0")));
  EXPECT_EQ(sys_.speed_of_interface("lo"), 25'000);
}

TEST_F(MadeUpSys, says_nothing_of_an_interface_that_has_another_number_here) {
  put("devices/pci0000:00/0000:00:05.0/virtio2/net/lo/ifindex", "7");
  EXPECT_EQ(sys_.place_of_interface("lo"), Place{});
  EXPECT_EQ(sys_.speed_of_interface("lo"), 0);
}

TEST_F(MadeUpSys, a_speed_that_is_none_is_not_known) {
  for (const char* line : {"-1", "", "fast", "inf"}) {
    put("devices/pci0000:00/0000:00:05.0/virtio2/net/lo/speed", line);
    EXPECT_EQ(sys_.speed_of_interface("lo"), 0) << line;
  }
  EXPECT_EQ(sys_.speed_of_rdma_device("rdmap141s0"), 100'000);
  EXPECT_EQ(sys_.speed_of_rdma_device("rdmap142s0"), 0);
}

TEST_F(MadeUpSys, processors_of_one_node_have_that_node_and_others_have_none) {
  EXPECT_EQ(sys_.numa_node_of(processors({0})), 0);
  EXPECT_EQ(sys_.numa_node_of(processors({3, 6})), 1);
  EXPECT_EQ(sys_.numa_node_of(processors({1, 2})), std::nullopt);
  EXPECT_EQ(sys_.numa_node_of(processors({8})), std::nullopt);
  EXPECT_EQ(sys_.numa_node_of({}), std::nullopt);
}

TEST_F(MadeUpSys, a_list_of_processors_that_makes_no_sense_is_read_as_far_as_it_does) {
  for (const char* line : {"", "x", "5-2", "99999999999999999999", "1024-2000"}) {
    put("devices/system/node/node1/cpulist", line);
    EXPECT_EQ(sys_.numa_node_of(processors({2, 3, 6, 7})), std::nullopt) << line;
  }
  put("devices/system/node/node1/cpulist", "2-");
  EXPECT_EQ(sys_.numa_node_of(processors({2})), 1);
}

TEST(SysDevices, without_any_files_say_nothing) {
  const SysDevices nothing("/nonexistent");
  EXPECT_EQ(nothing.place_of(pci("0000:00:03.0")), Place{});
  EXPECT_EQ(nothing.place_of_interface("lo"), Place{});
  EXPECT_EQ(nothing.numa_node_of(processors({0})), std::nullopt);
}

}  // namespace
}  // namespace fccl::core
