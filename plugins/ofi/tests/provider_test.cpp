// The table of providers, and the choice among what libfabric offers: of EFA and verbs as far as no NIC is needed.
#include "ofi/provider.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ofi/nics.h"

namespace fccl::ofi {

namespace {

constexpr uint32_t kOld = FI_VERSION(1, 17);
constexpr uint32_t kNew = FI_VERSION(2, 4);

TEST(ProviderTest, the_best_comes_first_and_nothing_that_is_not_meant_for_hosts_apart) {
  std::vector<std::string_view> names;
  for (const Provider& provider : providers()) names.push_back(provider.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"efa", "verbs", "tcp"}));
  for (const char* name : {"", "net", "sockets", "udp", "shm", "EFA"}) EXPECT_EQ(find_provider(name), nullptr) << name;
}

TEST(ProviderTest, tcp_has_another_name_in_old_libfabric) {
  const Provider& tcp = *find_provider("tcp");
  EXPECT_STREQ(libfabric_name(tcp, kOld), "net");
  EXPECT_STREQ(libfabric_name(tcp, FI_VERSION(1, 18)), "tcp");
  EXPECT_STREQ(libfabric_name(tcp, kNew), "tcp");
}

TEST(ProviderTest, the_interface_asked_for_is_one_that_both_know) {
  EXPECT_EQ(interface_version(kOld), kOld);
  EXPECT_EQ(interface_version(FI_VERSION(1, 18)), FI_VERSION(1, 18));
  EXPECT_EQ(interface_version(kNew), FI_VERSION(1, 18));
}

TEST(ProviderTest, hints_ask_for_writes_into_registered_memory_that_is_addressed_as_the_provider_likes) {
  for (const Provider& provider : providers()) {
    const Info hints = hints_for(provider, kNew);
    ASSERT_TRUE(hints);
    EXPECT_STREQ(hints->fabric_attr->prov_name, libfabric_name(provider, kNew));
    EXPECT_EQ(hints->ep_attr->type, FI_EP_RDM);
    EXPECT_EQ(hints->caps, FI_MSG | FI_RMA);
    EXPECT_EQ(hints->mode & (FI_CONTEXT | FI_CONTEXT2), FI_CONTEXT | FI_CONTEXT2);
    const int wanted = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    EXPECT_EQ(hints->domain_attr->mr_mode, wanted);
    EXPECT_EQ(hints->tx_attr->op_flags, 0u);
    EXPECT_EQ(hints->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  }
}

TEST(ProviderTest, efa_may_use_neither_shared_memory_nor_cuda_and_is_asked_who_writes) {
  const Provider& efa = *find_provider("efa");
  ASSERT_EQ(efa.forbidden.size(), 2u);
  EXPECT_EQ(efa.forbidden[0].name, kCudaApiPermitted.name);
  EXPECT_EQ(efa.forbidden[1].name, kSharedMemoryPermitted.name);
  EXPECT_EQ(efa.emulates_writes.name, kEfaEmulatedWrite.name);
  EXPECT_TRUE(efa.always_needs_polling);
  for (const char* name : {"verbs", "tcp"}) {
    EXPECT_TRUE(find_provider(name)->forbidden.empty());
    EXPECT_EQ(find_provider(name)->emulates_writes.name, 0);
  }
}

// What libfabric might offer: a list, first to last.
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

  Info first_;
  fi_info* last_ = nullptr;
};

TEST(ProviderTest, the_fabric_of_efa_with_messages_of_any_size_is_taken) {
  Offers offers;
  offers.add("efa", "efa-direct", "rdmap0s6-rdm");
  offers.add("efa", "efa", "rdmap0s6-rdm");
  offers.add("efa", "efa", "rdmap0s7-rdm");
  EXPECT_EQ(offers.chosen("efa", kNew, {"", {}}), 1);
  EXPECT_EQ(offers.chosen("efa", kNew, {"rdmap0s7-rdm", {}}), 2);
  EXPECT_EQ(offers.chosen("efa", kNew, {"rdmap0s8-rdm", {}}), -1);
}

TEST(ProviderTest, layers_over_a_provider_are_not_taken_for_it) {
  Offers offers;
  offers.add("tcp;ofi_rxm", "10.0.0.0/24", "eth0", "10.0.0.1");
  offers.add("net", "10.0.0.0/24", "eth0", "10.0.0.1");
  offers.add("tcp", "10.0.0.0/24", "eth0", "10.0.0.1");
  EXPECT_EQ(offers.chosen("tcp", kOld, {"eth0", {}}), 1);
  EXPECT_EQ(offers.chosen("tcp", kNew, {"eth0", {}}), 2);
}

TEST(ProviderTest, an_interface_is_used_by_ipv4_where_it_can_and_never_by_an_address_of_its_link_alone) {
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

TEST(ProviderTest, an_interface_may_be_chosen_by_its_address) {
  Offers offers;
  offers.add("tcp", "127.0.0.0/8", "lo", "127.0.0.1");
  offers.add("tcp", "10.0.0.0/24", "eth0", "10.0.0.1");
  EXPECT_EQ(offers.chosen("tcp", kNew, {"", Address{.v6 = false, .bytes = {10, 0, 0, 1}, .port = 0}}), 1);
  EXPECT_EQ(offers.chosen("tcp", kNew, {"", Address{.v6 = false, .bytes = {10, 0, 0, 2}, .port = 0}}), -1);
}

}  // namespace

}  // namespace fccl::ofi
