// How messages are cut over rails.
#include "wire/stripes.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

TEST(Stripes, cover_every_byte_once_and_keep_to_the_largest_write) {
  for (const int rails : {1, 2, 3, 7})
    for (const size_t write_bytes : {1000, 20000, 1 << 20})
      for (const size_t total : {0, 1, 63, 64, 16384, 16385, 100000, 262144}) {
        const Stripes stripes = Stripes::of(total, {rails, write_bytes});
        size_t covered = 0;
        for (size_t i = 0; i < stripes.count(); ++i) {
          EXPECT_EQ(stripes.offset(i), covered);
          EXPECT_GT(stripes.bytes(i), 0u);
          EXPECT_LE(stripes.bytes(i), write_bytes);
          covered += stripes.bytes(i);
        }
        EXPECT_EQ(covered, total);
      }
}

TEST(Stripes, are_as_many_as_there_are_rails_for_large_messages_and_one_for_small) {
  EXPECT_EQ(Stripes::of(256 << 10, {4, 1 << 20}).count(), 4u);
  EXPECT_EQ(Stripes::of(16 << 10, {4, 1 << 20}).count(), 1u);
}

}  // namespace
}  // namespace fccl::core
