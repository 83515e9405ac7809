// The modelled page is what the program writes; the ring's formula gives what it gives by hand, and init what was measured.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "model/init.h"
#include "model/nccl_ring.h"

namespace fccl::core::model {
namespace {

TEST(ModelledPage, is_what_the_program_writes) {
  std::string written;
  FILE* output = popen(FCCL_TEST_MODEL, "r");
  ASSERT_NE(output, nullptr);
  for (int c; (c = std::fgetc(output)) != EOF;) written += static_cast<char>(c);
  ASSERT_EQ(pclose(output), 0);
  std::ostringstream page;
  page << std::ifstream(FCCL_TEST_PAGE).rdbuf();
  EXPECT_EQ(page.str(), written) << "write the page again: build/fccl-model >docs/results/modelled.md";
}

TEST(NcclRing, of_no_bytes_is_its_latency) {
  const RingTime on_amd = nccl_ring(kP5, 2, 0);
  EXPECT_STREQ(on_amd.protocol, "LL");
  EXPECT_NEAR(on_amd.seconds * 1e6, 6.6 + 14 * 2.0 + 2.7 + 75, 1e-9);
  EXPECT_NEAR(nccl_ring(kP4d, 2, 0).seconds * 1e6, 6.6 + 14 * 1.0 + 2.7 + 75, 1e-9);
}

TEST(NcclRing, of_many_bytes_goes_at_the_speed_of_nvlink_on_p5_and_of_the_nics_on_p4d) {
  const double bytes = 1e13;
  EXPECT_STREQ(nccl_ring(kP5, 2, bytes).protocol, "Simple");
  EXPECT_NEAR(nccl_ring(kP5, 2, bytes).seconds / (bytes * 15 / 16 / 370.8e9), 1, 1e-4);
  EXPECT_NEAR(nccl_ring(kP4d, 2, bytes).seconds / (bytes * 15 / 16 / 50e9), 1, 1e-4);
}

constexpr std::size_t kSocketName = 16;
constexpr CostConstants kCosts{.latency = 1e-5, .message = 1e-6, .wire_byte = 1e-9, .added_byte = 0, .host_byte = 0};

// docs/explanation/init.md has the figures.
TEST(Init, sends_as_many_messages_as_was_measured_and_nearly_as_many_bytes) {
  const InitTraffic of_one_host = init_traffic({1, 512, "tcp", 1, kSocketName});
  EXPECT_EQ(of_one_host.messages, 2047);
  EXPECT_NEAR(of_one_host.bytes, 465e3, 0.05 * 465e3);
  const InitTraffic of_16_hosts = init_traffic({16, 4, "tcp", 1, kSocketName});
  EXPECT_EQ(of_16_hosts.messages, 300);
  EXPECT_NEAR(of_16_hosts.bytes, 320e3, 0.05 * 320e3);
}

TEST(Init, of_16_hosts_of_4_ranks_sends_at_most_400_KB) {
  const double bytes = init_traffic({16, 4, "tcp", 1, kSocketName}).bytes;
  EXPECT_LE(bytes, 400'000);
  // Reports of who has joined come on top, on a busy machine.
  EXPECT_LE(bytes, 380'000);
}

TEST(Init, takes_the_time_of_the_root_for_each_rank) {
  const auto seconds = [](int ranks) { return init_seconds({1, ranks, "tcp", 1, kSocketName}, kCosts, kCosts); };
  EXPECT_NEAR(seconds(512) - seconds(256), 256 * (6 + 5) * 1e-6, 1e-9);
}

TEST(Init, between_hosts_takes_longer_by_what_all_hosts_tell_all) {
  const auto seconds = [](int hosts) { return init_seconds({hosts, 8, "efa", 4, 32}, kCosts, kCosts); };
  EXPECT_LT(seconds(2), 0.31);
  // The tree has three levels below the top, and a leader sends what all give to 16 children.
  EXPECT_GT(seconds(512), 0.4);
  EXPECT_LT(seconds(512), 0.5);
}

}  // namespace
}  // namespace fccl::core::model
