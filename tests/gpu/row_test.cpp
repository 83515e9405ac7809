// Rows: what a rank says arrives as it was, and is one line of JSON.
#include "row.h"

#include <gtest/gtest.h>

namespace fccl::gpu {
namespace {

TEST(Row, ArrivesAsItWasSent) {
  const Row row = measured("a copy", 1.25, "GB/s", "note");
  const auto arrived = from_packet(to_packet(row));
  ASSERT_TRUE(arrived);
  EXPECT_EQ(to_json(1, "case", *arrived), to_json(1, "case", row));
}

TEST(Row, WithoutAValueArrivesWithoutOne) {
  const auto arrived = from_packet(to_packet(unsupported("flushing", "the device says so")));
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->verdict, Verdict::unsupported);
  EXPECT_FALSE(arrived->value);
}

TEST(Row, IsRefusedIfItIsNoRow) {
  EXPECT_FALSE(from_packet(""));
  EXPECT_FALSE(from_packet("0\x1f"));
  EXPECT_FALSE(from_packet("99\x1f\x1f\x1f\x1f"));
}

TEST(Row, IsOneLineOfJsonWhateverItSays) {
  const Row row = failed(R"(a "quoted" \ call)", "two\nlines");
  EXPECT_EQ(
      to_json(3, "c", row),
      R"({"question":3,"case":"c","what":"a \"quoted\" \\ call","verdict":"failed","value":null,"unit":"","note":"two lines"})");
}

}  // namespace
}  // namespace fccl::gpu
