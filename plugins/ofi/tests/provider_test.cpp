// The table of providers: of EFA and verbs as far as no NIC is needed.
#include "ofi/provider.h"

#include <gtest/gtest.h>

namespace fccl::core::ofi {

namespace {

constexpr uint32_t kOldLibfabric = FI_VERSION(1, 17);
constexpr uint32_t kNewLibfabric = FI_VERSION(2, 4);

TEST(ProviderTest, the_best_comes_first_and_nothing_that_is_not_meant_for_hosts_apart) {
  std::vector<std::string_view> names;
  for (const Provider& provider : providers()) names.push_back(provider.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"efa", "verbs", "tcp"}));
  for (const char* name : {"", "net", "sockets", "udp", "shm", "EFA"}) EXPECT_EQ(find_provider(name), nullptr) << name;
}

TEST(ProviderTest, tcp_has_another_name_in_old_libfabric) {
  const Provider& tcp = *find_provider("tcp");
  EXPECT_STREQ(libfabric_name(tcp, kOldLibfabric), "net");
  EXPECT_STREQ(libfabric_name(tcp, FI_VERSION(1, 18)), "tcp");
  EXPECT_STREQ(libfabric_name(tcp, kNewLibfabric), "tcp");
}

TEST(ProviderTest, the_interface_asked_for_is_one_that_both_know) {
  EXPECT_EQ(interface_version(kOldLibfabric), kOldLibfabric);
  EXPECT_EQ(interface_version(FI_VERSION(1, 18)), FI_VERSION(1, 18));
  EXPECT_EQ(interface_version(kNewLibfabric), FI_VERSION(1, 18));
}

TEST(ProviderTest, hints_ask_for_writes_into_registered_memory_that_is_addressed_as_the_provider_likes) {
  for (const Provider& provider : providers()) {
    const Info hints = hints_for(provider, kNewLibfabric);
    ASSERT_TRUE(hints);
    EXPECT_STREQ(hints->fabric_attr->prov_name, libfabric_name(provider, kNewLibfabric));
    EXPECT_EQ(hints->ep_attr->type, FI_EP_RDM);
    EXPECT_EQ(hints->caps, FI_MSG | FI_RMA | FI_SOURCE);
    EXPECT_EQ(hints->mode & (FI_CONTEXT | FI_CONTEXT2), FI_CONTEXT | FI_CONTEXT2);
    const int wanted = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    EXPECT_EQ(hints->domain_attr->mr_mode, wanted);
    EXPECT_EQ(hints->tx_attr->op_flags, 0u);
    EXPECT_EQ(hints->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  }
}

TEST(ProviderTest, efa_may_use_neither_shared_memory_nor_cuda) {
  const Provider& efa = *find_provider("efa");
  ASSERT_EQ(efa.forbidden.size(), 2u);
  EXPECT_EQ(efa.forbidden[0].name, kCudaApiPermitted.name);
  EXPECT_EQ(efa.forbidden[1].name, kSharedMemoryPermitted.name);
  for (const char* name : {"verbs", "tcp"}) EXPECT_TRUE(find_provider(name)->forbidden.empty());
}

}  // namespace

}  // namespace fccl::core::ofi
