// Tests of the codes of messages.
#include "base/result.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

TEST(MessageCodes, begin_with_the_result) {
  EXPECT_EQ(MessageCode(MessageKind::died), fcclRemoteError);
  EXPECT_EQ(MessageCode(MessageKind::aborted), fcclAborted);
  EXPECT_EQ(MessageCode(MessageKind::long_wait), fcclSuccess);
}

TEST(MessageCodes, of_a_result_alone_are_its_thousands) {
  EXPECT_EQ(MessageCode(fcclTimeout).number(), 8000);
  EXPECT_EQ(MessageCode(fcclTimeout), fcclTimeout);
}

TEST(MessageCodes, stand_behind_the_message_with_four_digits_or_more) {
  EXPECT_EQ(with_code("rank 1 died", MessageKind::died), "rank 1 died [FCCL-6001]");
  EXPECT_EQ(with_code("rank 1 is late", MessageKind::long_wait), "rank 1 is late [FCCL-0004]");
  EXPECT_EQ(with_code("rank 1 ended it", MessageKind::aborted), "rank 1 ended it [FCCL-10001]");
}

TEST(MessageCodes, of_a_peer_are_those_of_errors_alone) {
  EXPECT_EQ(MessageCode::of_peer(6001)->number(), 6001);
  EXPECT_EQ(MessageCode::of_peer(10999)->number(), 10999);
  for (const uint64_t number : {0ULL, 999ULL, 11000ULL, 65536ULL + 6001, ~0ULL})
    EXPECT_FALSE(MessageCode::of_peer(number)) << number;
}

}  // namespace
}  // namespace fccl::core
