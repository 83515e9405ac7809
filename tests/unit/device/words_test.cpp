// Tests of words: when a word has reached its target, and what one store releases.
#include "device/words.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace fccl::core {

namespace {

TEST(DeviceWords, have_come_from_their_target_on) {
  DeviceWord word{0};
  release_to_device(word, 6);
  EXPECT_TRUE(has_come(word, 5));
  EXPECT_TRUE(has_come(word, 6));
  EXPECT_FALSE(has_come(word, 7));
}

TEST(DeviceWords, wrap) {
  DeviceWord word{UINT64_MAX};
  EXPECT_FALSE(has_come(word, 0));
  release_to_device(word, 1);
  EXPECT_TRUE(has_come(word, UINT64_MAX));
}

TEST(DeviceWords, far_ahead_of_one_target_are_beyond_all_that_follow_it) {
  for (const uint64_t target : {uint64_t{0}, uint64_t{1000}, UINT64_MAX}) {
    DeviceWord word{0};
    release_to_device(word, target + kFarAhead);
    EXPECT_TRUE(has_come(word, target));
    EXPECT_TRUE(has_come(word, target + (uint64_t{1} << 40)));
  }
}

}  // namespace

}  // namespace fccl::core
