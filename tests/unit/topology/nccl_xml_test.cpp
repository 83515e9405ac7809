// Tests the reader of NCCL's topology files: dumps by NCCL, handmade files for NCCL, and faulty files.
#include "topology/nccl_xml.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "topology/rails.h"
#include "topology/text.h"

namespace fccl::core {
namespace {

std::string text_of(const std::string& xml) {
  const auto topology = parse_nccl_xml(xml);
  return topology ? to_text(*topology) : topology.error().message;
}

void expect_refused_xml(const std::string& xml, const std::string& said) {
  const auto topology = parse_nccl_xml(xml);
  ASSERT_FALSE(topology) << xml;
  EXPECT_EQ(topology.error().code, fcclInvalidUsage);
  EXPECT_NE(topology.error().message.find(said), std::string::npos) << topology.error().message;
}

TEST(NcclXml, that_nccl_dumped_has_gpus_ranks_and_nics_below_their_bridges) {
  EXPECT_EQ(text_of(R"(<?xml version="1.0"?>
<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:45:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="8">
      <pci busid="0000:52:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic><net name="rdmap82s0" dev="0" latency="75" speed="400000" port="1" guid="0xa0" maxconn="262144" gdr="1"/></nic>
      </pci>
      <pci busid="0000:46:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="8">
        <pci busid="0000:53:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
          <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:d0:00.0" count="5" tclass="0x068000"/></gpu>
        </pci>
      </pci>
    </pci>
    <nic><net name="eth0" dev="1" speed="10000" port="0" guid="0x0" maxconn="65536" gdr="0"/></nic>
  </cpu>
</system>)"),
            R"(fccl topology 1
host host
  nic eth0 speed 10Gbit/s numa 0
  nic rdmap82s0 speed 400Gbit/s pci 0000:52:00.0 numa 0 under 0000:45:00.0
  gpu 0 pci 0000:53:00.0 numa 0 under 0000:45:00.0/0000:46:00.0
  rank 0 gpu 0
)");
}

// Has the form of files made for NCCL on machines whose hypervisor hides the bridges.
TEST(NcclXml, that_was_made_by_hand_has_its_devices_by_their_classes) {
  EXPECT_EQ(text_of(R"(<!-- made -->
<system version="1">
  <cpu numaid="1" affinity="ffffff00,0000ffff,ff000000">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="8 GT/s" link_width="16">
      <pci busid="0000:10:1c.0" class="0x030200" link_speed="8 GT/s" link_width="16"/>
      <pci busid="0000:10:1d.0" class="0x030200" link_speed="8 GT/s" link_width="16"/>
      <pci busid="0000:10:1b.0" class="0x020000" link_speed="8 GT/s" link_width="16"/>
    </pci>
  </cpu>
</system>)"),
            R"(fccl topology 1
host host
  nic 0000:10:1b.0 pci 0000:10:1b.0 numa 1 under ffff:ff:01.0
  gpu 0 pci 0000:10:1c.0 numa 1 under ffff:ff:01.0
  gpu 1 pci 0000:10:1d.0 numa 1 under ffff:ff:01.0
)");
}

TEST(NcclXml, of_one_host_of_many_has_its_ranks_counted_from_0) {
  EXPECT_EQ(text_of(R"(<system><cpu numaid="0">
<pci busid="0000:01:00.0"><gpu dev="0" rank="9"/></pci><pci busid="0000:02:00.0"><gpu dev="1" rank="8"/></pci></cpu></system>)"),
            R"(fccl topology 1
host host
  gpu 0 pci 0000:01:00.0 numa 0
  gpu 1 pci 0000:02:00.0 numa 0
  rank 0 gpu 1
  rank 1 gpu 0
)");
}

TEST(NcclXml, of_several_hosts_has_them_in_the_order_of_their_first_ranks) {
  const std::string gpu = R"("><pci busid="0000:01:00.0"><gpu dev="0" rank=")", end = R"("/></pci></cpu>)";
  EXPECT_EQ(text_of("<system><cpu numaid=\"0\" host_hash=\"0xb" + gpu + "1" + end + "<cpu numaid=\"0\" host_hash=\"0xa" + gpu +
                    "0" + end + "</system>"),
            R"(fccl topology 1
host 0xa
  gpu 0 pci 0000:01:00.0 numa 0
  rank 0 gpu 0
host 0xb
  gpu 0 pci 0000:01:00.0 numa 0
  rank 1 gpu 0
)");
}

TEST(NcclXml, that_does_not_know_a_numa_node_has_minus_1_for_it) {
  EXPECT_EQ(text_of(R"(<system><cpu numaid="-1"><nic><net name="eth0"/></nic></cpu></system>)"),
            "fccl topology 1\nhost host\n  nic eth0\n");
}

TEST(NcclXml, tells_the_ports_of_one_device_apart) {
  const std::string text =
      text_of(R"(<system><cpu><nic><net name="mlx5_0" port="1"/><net name="mlx5_0" port="2"/></nic></cpu></system>)");
  EXPECT_EQ(text, "fccl topology 1\nhost host\n  nic mlx5_0\n  nic mlx5_0:2\n");
}

TEST(NcclXml, is_refused_with_its_place_where_it_is_none) {
  expect_refused_xml("fccl topology 1\n", "expected XML");
  expect_refused_xml("", "expected XML");
  expect_refused_xml("<system><cpu></system>", "expected XML, but found at byte");
  expect_refused_xml("<graphs/>", "expected <system>");
  expect_refused_xml("<system/>", "expected <cpu> in <system>");
  expect_refused_xml(R"(<system><cpu><pci busid="10:1b"/></cpu></system>)",
                     "expected <pci> with a busid such as 0000:10:1b.0, at byte");
  expect_refused_xml(R"(<system><cpu><nic><net speed="1"/></nic></cpu></system>)", "has a NIC whose name is empty");
}

TEST(NcclXml, is_refused_where_bridges_stand_inside_each_other_without_end) {
  std::string open, close;
  for (int i = 0; i < 100000; ++i) {
    open += "<pci busid=\"0000:00:00.0\">";
    close += "</pci>";
  }
  expect_refused_xml("<system><cpu>" + open + close + "</cpu></system>", "expected at most 16 <pci> inside each other");
}

// Searching all earlier hosts for each host took 10 s of processor time and more.
TEST(NcclXml, of_a_hundred_thousand_hosts_is_read_in_a_moment) {
  constexpr int kHosts = 100'000;
  std::string xml = "<system>";
  for (int i = 0; i < kHosts; ++i) xml += "<cpu host_hash=\"0x" + std::to_string(i) + "\"/>";
  const std::clock_t begin = std::clock();
  const auto topology = parse_nccl_xml(xml + "</system>");
  EXPECT_LT(std::clock() - begin, 3 * CLOCKS_PER_SEC);
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->hosts().size(), kHosts);
}

}  // namespace
}  // namespace fccl::core
