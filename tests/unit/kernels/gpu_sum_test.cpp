// The arithmetic of a GPU's sums, run on the CPU: the bits of the kernels of kernels/reduce.h, which are the law.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/gpu/sum.h"
#include "kernels/reduce.h"
#include "unit/kernels/inputs.h"

namespace fccl::core {
namespace {

using testing::Bytes;

constexpr size_t kEveryHalf = 65536;

template <class Kind>
void run(const gpu::SumWork& work) {
  float factors[Kind::kSources];
  gpu::load_factors<Kind>(work, factors);
  gpu::sum_elements<Kind>(work, factors, 0, 1);
}

struct GpuSum {
  const char* name;
  void (*run)(const gpu::SumWork& work);
  ReduceOp op;
  int sources;
  fcclDataType_t dtype;
  bool widens;
};

template <class Element>
constexpr fcclDataType_t kDtype = fcclFloat32;
template <>
constexpr fcclDataType_t kDtype<gpu::Float16> = fcclFloat16;
template <>
constexpr fcclDataType_t kDtype<gpu::Bfloat16> = fcclBfloat16;

#define FCCL_ON_CPU(name, op, In, Out, sources)                                                       \
  {#name,           run<gpu::Sum<gpu::SumOp::op, gpu::In, gpu::Out, sources>>, ReduceOp::op, sources, \
   kDtype<gpu::In>, sizeof(gpu::In::Stored) != sizeof(gpu::Out::Stored)},
const std::vector<GpuSum> kEverySum = {FCCL_EACH_SUM(FCCL_ON_CPU)};

// Of each sum, so many elements of any bits; the campaign sets more.
size_t tuples() {
  const char* set = std::getenv("FCCL_TEST_TUPLES");
  return set == nullptr ? 2'000 : std::strtoul(set, nullptr, 10);
}

class GpuSums : public ::testing::TestWithParam<GpuSum> {
 protected:
  // Both kernels on the same sources; their results are in poisoned memory, where the GPU's begins at `offset`.
  static void expect_equal_bits(const std::vector<Bytes>& sources, const std::vector<Scalar>& scalars, size_t offset = 0) {
    const GpuSum& sum = GetParam();
    const size_t count = sources[0].size() / size_of(sum.dtype);
    const size_t bytes = count * (sum.widens ? sizeof(float) : size_of(sum.dtype));
    Bytes expected(bytes, testing::kPoison), found(offset + bytes + 1, testing::kPoison);
    const auto addresses = testing::addresses_of(sources);
    const auto kernel = sum.widens ? float32_kernel(sum.dtype, sum.op) : reduce_kernel(sum.dtype, sum.op);
    kernel(expected.data(), addresses.data(), sum.sources, count, scalars.data());
    gpu::SumWork work{found.data() + offset, {}, {}, count};
    std::ranges::copy(addresses, work.sources);
    for (int source = 0; source < sum.sources; ++source) work.factors[source] = &scalars[source].bits;
    sum.run(work);
    const auto at = std::mismatch(expected.begin(), expected.end(), found.begin() + offset).first;
    EXPECT_TRUE(at == expected.end()) << sum.name << " differs at byte " << at - expected.begin() << " of " << bytes;
    EXPECT_EQ(found.back(), testing::kPoison);
  }

  static std::vector<Bytes> sources_of(size_t count, uint64_t (*element)(int source, size_t index)) {
    std::vector<Bytes> sources(GetParam().sources, Bytes(count * size_of(GetParam().dtype)));
    for (int s = 0; s < GetParam().sources; ++s)
      for (size_t i = 0; i < count; ++i) testing::put_element(sources[s], GetParam().dtype, i, element(s, i));
    return sources;
  }

  static std::vector<Scalar> ones() {
    const fcclDataType_t dtype = GetParam().dtype;
    const uint64_t one = dtype == fcclFloat32 ? 0x3f800000 : dtype == fcclFloat16 ? 0x3c00 : 0x3f80;
    return std::vector<Scalar>(GetParam().sources, Scalar{one});
  }
};

// Of 16 bits all that there are, as the first source; the others are zeros, so the value itself comes through both conversions.
TEST_P(GpuSums, every_value_of_16_bits_alone) {
  if (GetParam().dtype == fcclFloat32) return expect_equal_bits(testing::edge_sources(fcclFloat32, GetParam().sources), ones());
  expect_equal_bits(sources_of(kEveryHalf, [](int source, size_t index) { return source == 0 ? index : uint64_t{0}; }), ones());
}

TEST_P(GpuSums, every_value_of_16_bits_with_others) {
  expect_equal_bits(sources_of(kEveryHalf,
                               [](int source, size_t index) {
                                 return source == 0 ? index * (GetParam().dtype == fcclFloat32 ? 65537 : 1)
                                                    : testing::random_bits(source, index);
                               }),
                    testing::random_scalars(GetParam().dtype, GetParam().sources));
}

TEST_P(GpuSums, edges) {
  expect_equal_bits(testing::edge_sources(GetParam().dtype, GetParam().sources),
                    testing::random_scalars(GetParam().dtype, GetParam().sources));
}

// Numbers of a like size, whose order counts, and whose results lie at an odd address.
TEST_P(GpuSums, numbers) {
  expect_equal_bits(testing::random_sources(GetParam().dtype, GetParam().sources, tuples()),
                    testing::random_scalars(GetParam().dtype, GetParam().sources), 1);
}

TEST_P(GpuSums, any_bits) {
  expect_equal_bits(sources_of(tuples(), [](int source, size_t index) { return testing::random_bits(source + 100, index); }),
                    testing::random_scalars(GetParam().dtype, GetParam().sources));
}

INSTANTIATE_TEST_SUITE_P(Every, GpuSums, ::testing::ValuesIn(kEverySum),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(GpuSumsTest, are_105) { EXPECT_EQ(kEverySum.size(), 105u); }

}  // namespace
}  // namespace fccl::core
