// Tests of the nearest name to a misspelled one.
#include "base/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace fccl::core {
namespace {

using namespace std::string_view_literals;

TEST(Nearest, is_the_name_with_the_fewest_letters_changed_added_or_removed) {
  constexpr std::array kNames = {"topology"sv, "top"sv, "settings"sv};
  EXPECT_EQ(nearest("topologies", kNames), "topology");
  EXPECT_EQ(nearest("tip", kNames), "top");
  EXPECT_EQ(nearest("setings", kNames), "settings");
  EXPECT_EQ(nearest("top", kNames), "top");
}

TEST(Nearest, is_the_first_of_several) {
  constexpr std::array kNames = {"ab"sv, "ac"sv};
  EXPECT_EQ(nearest("ad", kNames), "ab");
}

}  // namespace
}  // namespace fccl::core
