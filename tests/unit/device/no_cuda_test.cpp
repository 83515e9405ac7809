// Tests that a build without CUDA refuses to open a device.
#include <gtest/gtest.h>

#include "device/device.h"

namespace fccl::core {

namespace {

TEST(NoCuda, every_gpu_is_refused_with_the_reason) {
  for (const int ordinal : {0, 1}) {
    const auto opened = open_device(ordinal);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, fcclSystemError);
    EXPECT_NE(opened.error().message.find("built without CUDA"), std::string::npos) << opened.error().message;
  }
}

TEST(NoCuda, no_device_is_current) { EXPECT_EQ(current_device(), -1); }

}  // namespace

}  // namespace fccl::core
