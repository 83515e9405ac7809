// Tests of the blocks of a call's buffers.
#include "base/call.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

TEST(Call, that_widens_has_blocks_of_either_type) {
  const Call call{{.collective = fcclCollReduceScatter, .dtype = fcclBfloat16, .count = 3, .widens = true}};
  EXPECT_EQ(call.input(5).total(), 30U);
  EXPECT_EQ(call.input(5).offset(2), 12U);
  EXPECT_EQ(call.output(5).total(), 12U);
}

}  // namespace
}  // namespace fccl::core
