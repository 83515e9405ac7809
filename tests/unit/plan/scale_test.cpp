// Tests that planning for one rank of a large communicator takes little time and memory.
#include <gtest/gtest.h>

#include <ctime>
#include <vector>

#include "plan/catalog.h"
#include "plan/choose.h"
#include "plan/project.h"

namespace fccl::core::plan {
namespace {

double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

constexpr CostConstants kConstantsAtScale{
    .latency = 1e-5, .message = 1e-6, .wire_byte = 1e-8, .added_byte = 1e-10, .host_byte = 1e-10};

TEST(Scale, of_4096_ranks_is_under_50_ms_and_10_MB_for_the_choice_and_every_plan) {
  constexpr int kHosts = 512;
  const double began = processor_seconds();
  const Chooser chooser(Shape::of_equal_hosts(kHosts, 8, 32, kConstantsAtScale));
  EXPECT_GT(chooser.choose({fcclCollAllGather, 1e6}).slices, 0);
  size_t bytes = 0;
  for (size_t i = 0; i < kCatalog<Project>.size(); ++i)
    bytes += steps_of(static_cast<int>(i), {kHosts}, 7).capacity() * sizeof(Step);
  EXPECT_LT(processor_seconds() - began, 0.05);
  EXPECT_LT(bytes, 10'000'000U);
}

}  // namespace
}  // namespace fccl::core::plan
