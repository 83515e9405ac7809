// Tests which GPU each rank gets.
#include "gpu/devices.h"

#include <gtest/gtest.h>

namespace fccl::perf {
namespace {

TEST(Devices, EachRankOfAHostHasTheNextGpu) {
  EXPECT_EQ(ordinals_of(0, 4, 8), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(ordinals_of(4, 4, 8), (std::vector<int>{4, 5, 6, 7}));
}

TEST(Devices, WhereThereAreFewerGpusRanksShareThem) {
  EXPECT_EQ(ordinals_of(0, 3, 1), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(ordinals_of(3, 3, 2), (std::vector<int>{1, 0, 1}));
}

}  // namespace
}  // namespace fccl::perf
