// The choice among what libfabric offers, and the list of it: of EFA and verbs as far as no NIC is needed.
#include "ofi/nics.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "topology/topology.h"

namespace fccl::core::ofi {

namespace {

constexpr uint32_t kOld = FI_VERSION(1, 17);
constexpr uint32_t kNew = FI_VERSION(2, 4);

// Lists what libfabric might offer, first to last.
class Offers {
 public:
  void add(const char* provider, const char* fabric, const char* nic, const char* address = nullptr) {
    fi_info* offer = fi_allocinfo();
    offer->fabric_attr->prov_name = ::strdup(provider);
    offer->fabric_attr->name = ::strdup(fabric);
    offer->domain_attr->name = ::strdup(nic);
    sockaddr_in in{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    if (address == nullptr) {
      offer->addr_format = FI_ADDR_EFA;
    } else if (::inet_pton(AF_INET, address, &in.sin_addr) == 1) {
      put(*offer, FI_SOCKADDR_IN, &in, sizeof(in));
    } else if (::inet_pton(AF_INET6, address, &in6.sin6_addr) == 1) {
      put(*offer, FI_SOCKADDR_IN6, &in6, sizeof(in6));
    }
    if (last_ == nullptr)
      first_.reset(offer);
    else
      last_->next = offer;
    last_ = offer;
  }
  // Adds what libfabric tells of the last one's device.
  void is_device(const char* address, size_t speed, fi_link_state state = FI_LINK_UP) {
    const PciAddress pci = *parse_pci_address(address);
    Device& device = devices_.emplace_back();
    device.bus.bus_type = FI_BUS_PCI;
    device.bus.attr.pci = {static_cast<uint16_t>(pci.domain), pci.bus, pci.device, pci.function};
    device.link.speed = speed;
    device.link.state = state;
    device.nic.bus_attr = &device.bus;
    device.nic.link_attr = &device.link;
    last_->nic = &device.nic;
  }
  std::vector<Nic> nics(const char* provider, uint32_t installed = kNew) const {
    return nics_in(first_.get(), *find_provider(provider), installed);
  }
  // Its number in the list, -1 for none.
  int chosen(const char* provider, uint32_t installed, const Wish& wish) const {
    const fi_info* chosen = choose_offer(first_.get(), *find_provider(provider), installed, wish);
    int number = 0;
    for (const fi_info* offer = first_.get(); offer != nullptr; offer = offer->next, ++number)
      if (offer == chosen) return number;
    return -1;
  }

 private:
  static void put(fi_info& offer, uint32_t format, const void* address, size_t bytes) {
    offer.addr_format = format;
    offer.src_addrlen = bytes;
    offer.src_addr = std::malloc(bytes);
    std::memcpy(offer.src_addr, address, bytes);
  }

  // libfabric leaves a NIC without operations to its owner.
  struct Device {
    fid_nic nic{};
    fi_bus_attr bus{};
    fi_link_attr link{};
  };

  std::deque<Device> devices_;
  Info first_;
  fi_info* last_ = nullptr;
};

constexpr size_t kGigabits100 = 100'000'000'000;

TEST(NicsTest, the_fabric_of_efa_with_messages_of_any_size_is_taken) {
  Offers offers;
  offers.add("efa", "efa-direct", "rdmap0s6-rdm");
  offers.add("efa", "efa", "rdmap0s6-rdm");
  offers.add("efa", "efa", "rdmap0s7-rdm");
  EXPECT_EQ(offers.chosen("efa", kNew, {"", {}}), 1);
  EXPECT_EQ(offers.chosen("efa", kNew, {"rdmap0s7-rdm", {}}), 2);
  EXPECT_EQ(offers.chosen("efa", kNew, {"rdmap0s8-rdm", {}}), -1);
}

TEST(NicsTest, a_nic_of_efa_may_be_called_by_its_device) {
  Offers offers;
  offers.add("efa", "efa", "rdmap79s0-rdm");
  offers.add("efa", "efa", "rdmap7-rdm");
  EXPECT_EQ(offers.chosen("efa", kNew, {"rdmap79s0", {}}), 0);
  EXPECT_EQ(offers.chosen("efa", kNew, {"rdmap7", {}}), 1);
  EXPECT_EQ(offers.chosen("efa", kNew, {"rdmap79s", {}}), -1);
}

TEST(NicsTest, an_interface_is_called_by_its_whole_name) {
  Offers offers;
  offers.add("tcp", "10.0.0.0/24", "br-lan", "10.0.0.1");
  EXPECT_EQ(offers.chosen("tcp", kNew, {"br", {}}), -1);
  EXPECT_EQ(offers.chosen("tcp", kNew, {"br-lan", {}}), 0);
}

TEST(NicsTest, all_nics_of_efa_are_listed_once_with_their_pci_addresses_and_speeds) {
  Offers offers;
  for (const char* fabric : {"efa-direct", "efa"})
    for (const auto& [name, pci] : {std::pair("rdmap79s0-rdm", "0000:4f:00.0"), std::pair("rdmap80s0-rdm", "0000:50:00.0")}) {
      offers.add("efa", fabric, name);
      offers.is_device(pci, kGigabits100);
    }
  offers.add("efa", "efa", "rdmap80s0-dgrm");
  const std::vector<Nic> nics = offers.nics("efa");
  ASSERT_EQ(nics.size(), 3u);
  EXPECT_EQ(nics[0], (Nic{"rdmap79s0-rdm", 100'000, {.pci = parse_pci_address("0000:4f:00.0")}}));
  EXPECT_EQ(nics[1], (Nic{"rdmap80s0-rdm", 100'000, {.pci = parse_pci_address("0000:50:00.0")}}));
  EXPECT_EQ(nics[2], (Nic{"rdmap80s0-dgrm", 0, {}}));
}

TEST(NicsTest, an_interface_of_two_addresses_is_one_nic_of_an_unknown_place_and_speed) {
  Offers offers;
  offers.add("tcp", "fe80::/64", "eth0", "fe80::1");
  offers.add("tcp", "10.0.0.0/24", "eth0", "10.0.0.1");
  offers.add("tcp", "fd00::/64", "eth0", "fd00::2");
  offers.add("tcp", "fe80::/64", "eth1", "fe80::2");
  EXPECT_EQ(offers.nics("tcp"), (std::vector<Nic>{{"eth0", 0, {}}}));
}

TEST(NicsTest, a_nic_without_a_link_is_not_listed) {
  Offers offers;
  offers.add("efa", "efa", "rdmap79s0-rdm");
  offers.is_device("0000:4f:00.0", kGigabits100, FI_LINK_DOWN);
  offers.add("efa", "efa", "rdmap80s0-rdm");
  offers.is_device("0000:50:00.0", kGigabits100, FI_LINK_UNKNOWN);
  const std::vector<Nic> nics = offers.nics("efa");
  ASSERT_EQ(nics.size(), 1u);
  EXPECT_EQ(nics[0].name, "rdmap80s0-rdm");
}

TEST(NicsTest, a_speed_that_no_nic_has_is_the_most_that_a_topology_takes) {
  Offers offers;
  offers.add("verbs;ofi_rxm", "IB-0xfe80000000000000", "mlx5_0", "10.0.0.1");
  offers.is_device("0001:4f:00.1", ~size_t{0});
  EXPECT_EQ(offers.nics("verbs"),
            (std::vector<Nic>{{"mlx5_0", Topology::kMostMegabits, {.pci = parse_pci_address("0001:4f:00.1")}}}));
}

TEST(NicsTest, layers_over_a_provider_are_not_taken_for_it) {
  Offers offers;
  offers.add("tcp;ofi_rxm", "10.0.0.0/24", "eth0", "10.0.0.1");
  offers.add("net", "10.0.0.0/24", "eth0", "10.0.0.1");
  offers.add("tcp", "10.0.0.0/24", "eth0", "10.0.0.1");
  EXPECT_EQ(offers.chosen("tcp", kOld, {"eth0", {}}), 1);
  EXPECT_EQ(offers.chosen("tcp", kNew, {"eth0", {}}), 2);
}

TEST(NicsTest, an_interface_is_used_by_ipv4_where_it_can_and_never_by_an_address_of_its_link_alone) {
  Offers offers;
  offers.add("tcp", "fe80::/64", "eth0", "fe80::1");
  offers.add("tcp", "fd00::/64", "eth0", "fd00::2");
  offers.add("tcp", "10.0.0.0/24", "eth0", "10.0.0.1");
  offers.add("tcp", "fe80::/64", "eth1", "fe80::2");
  offers.add("tcp", "fd01::/64", "eth1", "fd01::2");
  offers.add("tcp", "fe80::/64", "eth2", "fe80::3");
  EXPECT_EQ(offers.chosen("tcp", kNew, {"eth0", {}}), 2);
  EXPECT_EQ(offers.chosen("tcp", kNew, {"eth1", {}}), 4);
  EXPECT_EQ(offers.chosen("tcp", kNew, {"eth2", {}}), -1);
}

TEST(NicsTest, an_interface_may_be_chosen_by_its_address) {
  Offers offers;
  offers.add("tcp", "127.0.0.0/8", "lo", "127.0.0.1");
  offers.add("tcp", "10.0.0.0/24", "eth0", "10.0.0.1");
  EXPECT_EQ(offers.chosen("tcp", kNew, {"", Address{.v6 = false, .bytes = {10, 0, 0, 1}, .port = 0}}), 1);
  EXPECT_EQ(offers.chosen("tcp", kNew, {"", Address{.v6 = false, .bytes = {10, 0, 0, 2}, .port = 0}}), -1);
}

}  // namespace

}  // namespace fccl::core::ofi
