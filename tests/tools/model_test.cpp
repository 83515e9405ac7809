// The modelled page is what the program writes, and the ring's formula gives what it gives by hand.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

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

}  // namespace
}  // namespace fccl::core::model
