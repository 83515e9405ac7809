// Tests of the 128 bytes of a unique id.
#include "channels/unique_id.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace fccl::core {
namespace {

UniqueId sample() {
  UniqueId id;
  id.root = {true, {0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 54321};
  id.generation = 0x0123456789abcdef;
  fill_random(id.key);
  return id;
}

TEST(UniqueId, comes_back_from_its_bytes) {
  const UniqueId id = sample();
  const Result<UniqueId> back = from_c(to_c(id));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, id);
}

TEST(UniqueId, zeros_are_refused_with_a_question) {
  const Result<UniqueId> id = from_c(fcclUniqueId{});
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, fcclInvalidArgument);
  EXPECT_NE(id.error().message.find("all zeros"), std::string::npos);
}

TEST(UniqueId, is_refused_when_its_tail_is_cut_at_any_byte) {
  const fcclUniqueId whole = to_c(sample());
  for (size_t length = 0; length < sizeof(whole.internal); ++length) {
    fcclUniqueId cut{};
    std::memcpy(cut.internal, whole.internal, length);
    if (std::memcmp(&cut, &whole, sizeof(cut)) == 0) continue;  // the tail was zero
    EXPECT_FALSE(from_c(cut)) << length;
  }
}

TEST(UniqueId, is_refused_when_any_bit_is_flipped) {
  const fcclUniqueId whole = to_c(sample());
  for (size_t bit = 0; bit < 8 * sizeof(whole.internal); ++bit) {
    fcclUniqueId damaged = whole;
    damaged.internal[bit / 8] = static_cast<char>(damaged.internal[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(from_c(damaged)) << bit;
  }
}

TEST(UniqueId, random_bytes_are_refused) {
  for (int i = 0; i < 100; ++i) {
    std::array<unsigned char, FCCL_UNIQUE_ID_BYTES> noise{};
    fill_random(noise);
    fcclUniqueId id;
    std::memcpy(id.internal, noise.data(), noise.size());
    EXPECT_FALSE(from_c(id));
  }
}

TEST(UniqueId, names_a_door_of_each_host_that_only_who_holds_the_key_can_name) {
  UniqueId id = sample();
  EXPECT_EQ(door_name(id, "a"), door_name(id, "a"));
  std::set<std::string> names{door_name(id, "a"), door_name(id, "b")};
  ++id.root.port;
  names.insert(door_name(id, "a"));
  id.key[31] ^= 1;
  names.insert(door_name(id, "a"));
  EXPECT_EQ(names.size(), 4U);
}

}  // namespace
}  // namespace fccl::core
