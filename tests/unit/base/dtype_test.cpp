// Tests of data types and operators: sizes, names, and unknown values.
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <utility>

namespace fccl::core {
namespace {

TEST(DataType, has_the_size_and_the_name_of_its_elements) {
  const std::pair<fcclDataType_t, std::pair<size_t, std::string>> rows[] = {
      {fcclInt8, {1, "int8"}},         {fcclUint8, {1, "uint8"}},           {fcclInt32, {4, "int32"}},
      {fcclUint32, {4, "uint32"}},     {fcclInt64, {8, "int64"}},           {fcclUint64, {8, "uint64"}},
      {fcclFloat16, {2, "float16"}},   {fcclFloat32, {4, "float32"}},       {fcclFloat64, {8, "float64"}},
      {fcclBfloat16, {2, "bfloat16"}}, {fcclFloat8e4m3, {1, "float8e4m3"}}, {fcclFloat8e5m2, {1, "float8e5m2"}},
      {fcclInt16, {2, "int16"}},       {fcclUint16, {2, "uint16"}},         {fcclBool, {1, "bool"}}};
  EXPECT_EQ(std::size(rows), static_cast<size_t>(fcclNumTypes));
  for (const auto& [dtype, expected] : rows) {
    EXPECT_TRUE(is_valid(dtype)) << expected.second;
    EXPECT_EQ(size_of(dtype), expected.first) << expected.second;
    EXPECT_EQ(name_of(dtype), expected.second);
  }
}

TEST(DataType, is_refused_outside_the_range_of_the_c_interface) {
  for (int value : {-1, static_cast<int>(fcclNumTypes), 1000}) {
    const auto dtype = static_cast<fcclDataType_t>(value);
    EXPECT_FALSE(is_valid(dtype)) << value;
    EXPECT_EQ(size_of(dtype), 0u) << value;
    EXPECT_STREQ(name_of(dtype), "?") << value;
  }
}

TEST(DataType, has_the_short_aliases_of_nccl) {
  EXPECT_EQ(fcclChar, fcclInt8);
  EXPECT_EQ(fcclInt, fcclInt32);
  EXPECT_EQ(fcclHalf, fcclFloat16);
  EXPECT_EQ(fcclFloat, fcclFloat32);
  EXPECT_EQ(fcclDouble, fcclFloat64);
}

TEST(ReduceOp, has_the_values_of_the_c_interface) {
  EXPECT_EQ(static_cast<int>(ReduceOp::sum), fcclSum);
  EXPECT_EQ(static_cast<int>(ReduceOp::prod), fcclProd);
  EXPECT_EQ(static_cast<int>(ReduceOp::max), fcclMax);
  EXPECT_EQ(static_cast<int>(ReduceOp::min), fcclMin);
  EXPECT_EQ(static_cast<int>(ReduceOp::avg), fcclAvg);
  EXPECT_EQ(static_cast<int>(ReduceOp::band), fcclBand);
  EXPECT_EQ(static_cast<int>(ReduceOp::bor), fcclBor);
  EXPECT_EQ(static_cast<int>(ReduceOp::bxor), fcclBxor);
}

TEST(ReduceOp, has_its_own_name) {
  EXPECT_STREQ(name_of(ReduceOp::sum), "sum");
  EXPECT_STREQ(name_of(ReduceOp::prod), "prod");
  EXPECT_STREQ(name_of(ReduceOp::max), "max");
  EXPECT_STREQ(name_of(ReduceOp::min), "min");
  EXPECT_STREQ(name_of(ReduceOp::avg), "avg");
  EXPECT_STREQ(name_of(ReduceOp::band), "band");
  EXPECT_STREQ(name_of(ReduceOp::bor), "bor");
  EXPECT_STREQ(name_of(ReduceOp::bxor), "bxor");
  EXPECT_STREQ(name_of(ReduceOp::premul_sum), "premul_sum");
}

}  // namespace
}  // namespace fccl::core
