// The conformance suite over examples/transport, opened as FCCL_TRANSPORT_PLUGIN is.
#include "transports/conformance.h"
#include "wire/plugin.h"

namespace fccl::core {
namespace {

// It has one rail for the one NIC that it offers.
Result<std::vector<std::unique_ptr<Transport>>> open_plain_tcp(int processes, int rails) {
  const TransportRequest request{.provider = "plain-tcp", .nics = std::vector<std::string>(static_cast<size_t>(rails), "lo")};
  std::vector<std::unique_ptr<Transport>> transports;
  for (int process = 0; process < processes; ++process) {
    FCCL_TRY_ASSIGN(auto opened, open_transport(FCCL_PLAIN_TCP, request));
    transports.push_back(std::move(opened));
  }
  return transports;
}

INSTANTIATE_TEST_SUITE_P(PlainTcp, Conformance, testing::Values(TransportFactory{"loopback", open_plain_tcp}), name_of_factory);

TEST(PlainTcp, offers_the_nic_that_is_named_with_costs_that_make_sense) {
  const auto offered = list_nics(FCCL_PLAIN_TCP, {.provider = "", .names = {"lo"}});
  ASSERT_TRUE(offered) << offered.error().message;
  EXPECT_EQ(offered->provider, "plain-tcp");
  ASSERT_EQ(offered->nics.size(), 1u);
  EXPECT_EQ(offered->nics[0].name, "lo");
}

TEST(PlainTcp, names_a_nic_that_is_not_there) {
  const auto opened = open_transport(FCCL_PLAIN_TCP, {.provider = "plain-tcp", .nics = {"eth77"}});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "plain-tcp: cannot listen on eth77: No such device");
}

}  // namespace
}  // namespace fccl::core
