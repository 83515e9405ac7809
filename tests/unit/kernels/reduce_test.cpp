// The reduction kernels, bit for bit against the written order.
#include "kernels/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <tuple>

#include "kernels/float_environment.h"
#include "unit/kernels/instruction_sets.h"
#include "unit/kernels/reference.h"

namespace fccl {
namespace {

using testing::Bytes;
using testing::reference_reduce;

constexpr std::byte kPoison{0xa5};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::avg, ReduceOp::premul_sum};

// Every type with every operator but the average and the pre-multiplied sum of truth values.
std::vector<std::tuple<fcclDataType_t, ReduceOp>> every_kernel() {
  std::vector<std::tuple<fcclDataType_t, ReduceOp>> all;
  for (int dtype = 0; dtype < fcclNumTypes; ++dtype)
    for (const ReduceOp op : kOps)
      if (dtype != fcclBool || (op != ReduceOp::avg && op != ReduceOp::premul_sum))
        all.emplace_back(static_cast<fcclDataType_t>(dtype), op);
  return all;
}

uint64_t random_bits(uint64_t source, uint64_t index) {
  uint64_t x = source * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u + 0x94d049bb133111ebu;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Any integer; floats of either sign whose exponents differ enough that the order of the additions shows in the result.
uint64_t random_element(fcclDataType_t dtype, uint64_t source, uint64_t index) {
  const uint64_t bits = random_bits(source, index);
  const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63, static_cast<int>(bits % 9) - 4);
  switch (dtype) {
    case fcclFloat16:
      return testing::encode(value, testing::kFloat16);
    case fcclBfloat16:
      return testing::encode(value, testing::kBfloat16);
    case fcclFloat8e4m3:
      return testing::encode(value, testing::kFloat8e4m3);
    case fcclFloat8e5m2:
      return testing::encode(value, testing::kFloat8e5m2);
    case fcclBool:
      return bits % 2 == 0 ? 0 : bits;
    case fcclFloat32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case fcclFloat64:
      return std::bit_cast<uint64_t>(value);
    default:
      return bits;
  }
}

void put_element(Bytes& bytes, fcclDataType_t dtype, size_t index, uint64_t element) {
  std::memcpy(bytes.data() + index * size_of(dtype), &element, size_of(dtype));
}

std::vector<Bytes> random_sources(fcclDataType_t dtype, int source_count, size_t count) {
  std::vector<Bytes> sources(source_count, Bytes(count * size_of(dtype)));
  for (int s = 0; s < source_count; ++s) {
    for (size_t i = 0; i < count; ++i) put_element(sources[s], dtype, i, random_element(dtype, s, i));
  }
  return sources;
}

std::vector<Scalar> random_scalars(fcclDataType_t dtype, int source_count) {
  std::vector<Scalar> scalars(source_count);
  for (int s = 0; s < source_count; ++s) scalars[s].bits = random_element(dtype, s, 1'000'000);
  return scalars;
}

std::vector<const void*> addresses_of(const std::vector<Bytes>& sources) {
  std::vector<const void*> addresses(sources.size());
  std::ranges::transform(sources, addresses.begin(), [](const Bytes& source) { return source.data(); });
  return addresses;
}

Bytes prefix(const Bytes& bytes, size_t size) { return Bytes(bytes.begin(), bytes.begin() + size); }

// What `reduce` makes of a kernel on every instruction set; the kernels are handed over one by one.
void on_every_instruction_set(fcclDataType_t dtype, ReduceOp op, const std::function<void(ReduceKernel)>& reduce) {
  for (const int64_t set : testing::instruction_sets()) {
    SCOPED_TRACE(hwy::TargetName(set));
    const testing::InstructionSet chosen(set);
    reduce(reduce_kernel(dtype, op));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

class EveryKernel : public ::testing::TestWithParam<std::tuple<fcclDataType_t, ReduceOp>> {
 protected:
  // Expects the first `count` elements of `expected`, and nothing written behind them.
  void expect(const Bytes& expected, const std::vector<const void*>& sources, size_t count,
              const std::vector<Scalar>& scalars) const {
    const auto size = static_cast<ptrdiff_t>(count * size_of(dtype));
    on_every_instruction_set(dtype, op, [&](ReduceKernel reduce) {
      Bytes out(size + 64, kPoison);
      reduce(out.data(), sources.data(), static_cast<int>(sources.size()), count, scalars.data());
      const auto wrong = std::mismatch(out.begin(), out.begin() + size, expected.begin()).first;
      ASSERT_EQ(wrong - out.begin(), size) << "the first wrong byte; " << sources.size() << " sources, count " << count;
      ASSERT_EQ(std::count(out.begin() + size, out.end(), kPoison), 64) << "wrote behind element " << count;
    });
  }

  const fcclDataType_t dtype = std::get<0>(GetParam());
  const ReduceOp op = std::get<1>(GetParam());
};

TEST_P(EveryKernel, has_the_written_order_for_every_number_of_sources) {
  constexpr size_t kCount = 600;  // more than one block of every type
  for (int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33, 64}) {
    const auto sources = random_sources(dtype, n, kCount);
    const auto scalars = random_scalars(dtype, n);
    expect(reference_reduce(dtype, op, sources, scalars), addresses_of(sources), kCount, scalars);
  }
}

TEST_P(EveryKernel, has_the_written_order_for_thousands_of_sources) {
  for (int n : {1000, 4095, 4097}) {
    const auto sources = random_sources(dtype, n, 5);
    const auto scalars = random_scalars(dtype, n);
    expect(reference_reduce(dtype, op, sources, scalars), addresses_of(sources), 5, scalars);
  }
}

TEST_P(EveryKernel, writes_exactly_count_elements) {
  constexpr size_t kMost = 1030;
  for (int n : {1, 2, 3, 4, 6}) {
    const auto sources = random_sources(dtype, n, kMost);
    const auto scalars = random_scalars(dtype, n);
    const auto addresses = addresses_of(sources);
    const Bytes expected = reference_reduce(dtype, op, sources, scalars);
    for (size_t count = 0; count <= kMost; count = count == 257 ? 508 : count == 516 ? 1020 : count + 1)
      expect(expected, addresses, count, scalars);
  }
}

TEST_P(EveryKernel, works_at_any_alignment) {
  constexpr size_t kCount = 530;
  for (int n : {1, 2, 3, 4, 5}) {
    const auto sources = random_sources(dtype, n, kCount);
    const auto scalars = random_scalars(dtype, n);
    const Bytes expected = reference_reduce(dtype, op, sources, scalars);
    for (size_t shift = 1; shift < 64; shift += shift < 9 ? 1 : 6) {
      std::vector<Bytes> shifted;
      std::vector<const void*> addresses;
      for (int s = 0; s < n; ++s) {
        const size_t offset = (shift + s) % 64;
        shifted.emplace_back(offset).insert(shifted.back().end(), sources[s].begin(), sources[s].end());
        addresses.push_back(shifted.back().data() + offset);
      }
      on_every_instruction_set(dtype, op, [&](ReduceKernel reduce) {
        Bytes out(shift + expected.size(), kPoison);
        reduce(out.data() + shift, addresses.data(), n, kCount, scalars.data());
        ASSERT_EQ(Bytes(out.begin() + static_cast<ptrdiff_t>(shift), out.end()), expected) << n << " sources, shift " << shift;
        ASSERT_EQ(prefix(out, shift), Bytes(shift, kPoison)) << "wrote before the first element";
      });
    }
  }
}

TEST_P(EveryKernel, may_write_over_any_one_source) {
  constexpr size_t kCount = 333;  // several chunks, and some elements behind them
  for (int n : {1, 2, 3, 4, 5, 7, 8}) {
    const auto sources = random_sources(dtype, n, kCount);
    const auto scalars = random_scalars(dtype, n);
    const Bytes expected = reference_reduce(dtype, op, sources, scalars);
    for (int over = 0; over < n; ++over) {
      on_every_instruction_set(dtype, op, [&](ReduceKernel reduce) {
        auto overwritten = sources;
        reduce(overwritten[over].data(), addresses_of(overwritten).data(), n, kCount, scalars.data());
        for (int s = 0; s < n; ++s) {
          ASSERT_EQ(overwritten[s], s == over ? expected : sources[s]) << n << " sources, over " << over << ", source " << s;
        }
      });
    }
  }
}

TEST_P(EveryKernel, may_read_one_source_several_times) {
  const auto once = random_sources(dtype, 1, 300);
  const std::vector<Bytes> sources(4, once[0]);
  const auto scalars = random_scalars(dtype, 4);
  expect(reference_reduce(dtype, op, sources, scalars), std::vector<const void*>(4, once[0].data()), 300, scalars);
}

// Bit patterns at which arithmetic changes its course, for every type: zeros, units, extremes, subnormals, infinities, NaN. Of
// a byte, every pattern.
std::vector<uint64_t> edges_of(fcclDataType_t dtype) {
  std::vector<uint64_t> edges;
  const int width = static_cast<int>(size_of(dtype)) * 8;
  for (uint64_t pattern = 0; width == 8 && pattern < 256; ++pattern) edges.push_back(pattern);
  if (width == 8) return edges;
  const uint64_t sign = uint64_t{1} << (width - 1);
  const int mantissa_bits = dtype == fcclBfloat16 ? 7 : width == 16 ? 10 : width == 32 ? 23 : 52;
  const uint64_t infinity = (sign - 1) & ~((uint64_t{1} << mantissa_bits) - 1);
  const uint64_t smallest_normal = uint64_t{1} << mantissa_bits;
  const uint64_t quiet = smallest_normal >> 1;
  for (uint64_t magnitude :
       {uint64_t{0}, uint64_t{1}, uint64_t{2}, smallest_normal - 1, smallest_normal, smallest_normal + 1, infinity / 2,
        infinity - 2, infinity - 1, infinity, infinity | 1, infinity | quiet, infinity | quiet | 1, sign - 1}) {
    edges.push_back(magnitude);
    edges.push_back(sign | magnitude);
    edges.push_back((~magnitude + 1) & (sign | (sign - 1)));
  }
  return edges;
}

// Sources that show every pair of edge values to the first two of them.
std::vector<Bytes> edge_sources(fcclDataType_t dtype, int n) {
  const auto edges = edges_of(dtype);
  std::vector<Bytes> sources(n, Bytes(edges.size() * edges.size() * size_of(dtype)));
  for (size_t i = 0; i < edges.size() * edges.size(); ++i)
    for (int s = 0; s < n; ++s) {
      const size_t edge = s == 0 ? i / edges.size() : s == 1 ? i % edges.size() : random_bits(s, i) % edges.size();
      put_element(sources[s], dtype, i, edges[edge]);
    }
  return sources;
}

TEST_P(EveryKernel, has_the_written_value_for_every_pair_of_edge_values) {
  const auto edges = edges_of(dtype);
  for (int n : {1, 2, 3, 5}) {
    const auto sources = edge_sources(dtype, n);
    const size_t step = op == ReduceOp::premul_sum && n == 2 ? edges.size() / 5 : edges.size();
    for (size_t first_scalar = 0; first_scalar < edges.size(); first_scalar += step) {
      std::vector<Scalar> scalars(n);
      for (int s = 0; s < n; ++s) scalars[s].bits = edges[(first_scalar + s) % edges.size()];
      expect(reference_reduce(dtype, op, sources, scalars), addresses_of(sources), edges.size() * edges.size(), scalars);
    }
  }
}

// Asks the processor to flush subnormals, as torch.set_flush_denormal does, and to round upwards.
class Disturbed {
 public:
  Disturbed() { FloatControl::write(kDisturbing); }
  ~Disturbed() { FloatControl::write(found_); }
  Disturbed(const Disturbed&) = delete;
  Disturbed& operator=(const Disturbed&) = delete;

#if defined(__SSE2__)
  static constexpr FloatControl::Word kDisturbing = 0x1f80 | 0x8040 | 0x4000;
#else
  static constexpr FloatControl::Word kDisturbing = 1 << 24 | 1 << 22;
#endif

 private:
  FloatControl::Word found_ = FloatControl::read();
};

TEST_P(EveryKernel, has_its_value_whatever_the_callers_floating_point_environment) {
  for (int n : {1, 2, 3, 4}) {
    const auto sources = edge_sources(dtype, n);
    const auto scalars = random_scalars(dtype, n);
    const Bytes expected = reference_reduce(dtype, op, sources, scalars);
    const auto addresses = addresses_of(sources);
    on_every_instruction_set(dtype, op, [&](ReduceKernel reduce) {
      Bytes out(expected.size(), kPoison);
      {
        const Disturbed here;
        reduce(out.data(), addresses.data(), n, expected.size() / size_of(dtype), scalars.data());
        ASSERT_EQ(FloatControl::read() & ~FloatControl::kFlags, Disturbed::kDisturbing) << "the caller's own is gone";
      }
      ASSERT_EQ(out, expected) << n << " sources";
    });
  }
}

std::string name_of_kernel(const ::testing::TestParamInfo<EveryKernel::ParamType>& info) {
  return std::string(name_of(std::get<0>(info.param))) + "_" + name_of(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, ::testing::ValuesIn(every_kernel()), name_of_kernel);

// One element reduced by a kernel, for the tests that state a value.
template <class T>
T reduced(fcclDataType_t dtype, ReduceOp op, const std::vector<T>& values, const std::vector<T>& factors = {}) {
  std::vector<const void*> sources(values.size());
  for (size_t s = 0; s < values.size(); ++s) sources[s] = &values[s];
  std::vector<Scalar> scalars(values.size());
  for (size_t s = 0; s < factors.size(); ++s) std::memcpy(&scalars[s].bits, &factors[s], sizeof(T));
  T out;
  reduce_kernel(dtype, op)(&out, sources.data(), static_cast<int>(sources.size()), 1, scalars.data());
  return out;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kNanBits = 0x7fc00000;

uint32_t reduced_bits(ReduceOp op, const std::vector<float>& values) {
  return std::bit_cast<uint32_t>(reduced(fcclFloat32, op, values));
}

TEST(ReduceKernel, exists_for_every_type_and_operator_but_averages_and_scaled_sums_of_truth_values) {
  for (int dtype = 0; dtype < fcclNumTypes; ++dtype)
    for (ReduceOp op : kOps) {
      const bool has_no_meaning = dtype == fcclBool && (op == ReduceOp::avg || op == ReduceOp::premul_sum);
      EXPECT_EQ(reduce_kernel(static_cast<fcclDataType_t>(dtype), op) == nullptr, has_no_meaning)
          << dtype << " " << name_of(op);
    }
  for (int dtype : {-1, static_cast<int>(fcclNumTypes)})
    EXPECT_EQ(reduce_kernel(static_cast<fcclDataType_t>(dtype), ReduceOp::sum), nullptr) << dtype;
}

TEST(ReduceKernel, adds_as_a_tree_and_not_as_a_chain) {
  // 1 + 2^-24 rounds to 1, so a chain would never leave 1; the tree adds the small ones first.
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::sum, {1.0f, 0.0f, 0x1p-24f, 0x1p-24f}), 1.0f + 0x1p-23f);
  // Three sources split as 2 + 1, not as 1 + 2.
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::sum, {1.0f, 0x1p-24f, 0x1p-24f}), 1.0f);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::sum, {0x1p-24f, 0x1p-24f, 1.0f}), 1.0f + 0x1p-23f);
}

TEST(ReduceKernel, multiplies_in_the_same_tree) {
  // A chain from the left would overflow with the second source.
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::prod, {0x1p100f, 0x1p-100f, 0x1p100f, 0x1p-100f}), 1.0f);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::prod, {0x1p-100f, 0x1p100f, 0x1p100f}), 0x1p100f);
  EXPECT_TRUE(std::isnan(reduced<float>(fcclFloat32, ReduceOp::prod, {0x1p100f, 0x1p100f, 0x1p-100f, 0x1p-100f})))
      << "infinity times zero: the pairs come first";
}

TEST(ReduceKernel, rounds_16_bit_sums_once) {
  // 256 + 1 is a tie in bfloat16: rounded after every addition the sum would stay 256.
  const uint16_t two_hundred_fifty_six = 0x4380, one = 0x3f80, two_hundred_fifty_eight = 0x4381;
  EXPECT_EQ(reduced<uint16_t>(fcclBfloat16, ReduceOp::sum, {two_hundred_fifty_six, one, one}), two_hundred_fifty_eight);
  // The sum overflows float16, the average does not.
  EXPECT_EQ(reduced<uint16_t>(fcclFloat16, ReduceOp::avg, {0x7bff, 0x7bff, 0x7bff, 0x7bff}), 0x7bff);
  EXPECT_EQ(reduced<uint16_t>(fcclFloat16, ReduceOp::sum, {0x7bff, 0x7bff, 0x7bff, 0x7bff}), 0x7c00);
}

TEST(ReduceKernel, divides_an_average_by_the_number_of_sources) {
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::avg, {5.0f, 0.0f, 0.0f}), 5.0f / 3.0f);
  EXPECT_NE(5.0f / 3.0f, 5.0f * (1.0f / 3.0f)) << "this input cannot tell a division from a multiplication";
}

TEST(ReduceKernel, truncates_integer_averages_towards_zero) {
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, {7, 0}), 3);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, {-7, 0}), -3);
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::avg, {-8, 0, 0}), -2);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, {INT32_MIN}), INT32_MIN);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, {INT32_MIN, 0}), INT32_MIN / 2);
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::avg, {INT64_MIN, INT64_MIN}), 0) << "the sum wraps before it is divided";
  EXPECT_EQ(reduced<int8_t>(fcclInt8, ReduceOp::avg, {100, 100}), -28) << "the sum wraps before it is divided";
  EXPECT_EQ(reduced<uint8_t>(fcclUint8, ReduceOp::avg, {200, 100}), 22) << "the sum wraps before it is divided";
  EXPECT_EQ(reduced<uint64_t>(fcclUint64, ReduceOp::avg, {UINT64_MAX, 0}), UINT64_MAX / 2);
  EXPECT_EQ(reduced<int8_t>(fcclInt8, ReduceOp::avg, std::vector<int8_t>(300, 1)), 44 / 300) << "more sources than values";
}

TEST(ReduceKernel, divides_every_integer_of_up_to_32_bits_as_integers_are_divided) {
  for (const int n : {3, 5, 7, 11, 4097, 65535, 65536}) {
    std::vector<uint32_t> sums;
    for (uint32_t quotient : {0u, 1u, 2u, 3u, 255u, 32767u, 65535u, 65536u, 0x7fffffffu / n, 0xffffffffu / n})
      for (uint32_t rest : {0u, 1u, static_cast<uint32_t>(n) - 1}) sums.push_back(quotient * n + rest);
    for (const uint32_t sum : sums) {
      std::vector<uint32_t> values(n);
      values[0] = sum;
      EXPECT_EQ(reduced<uint32_t>(fcclUint32, ReduceOp::avg, values), sum / n) << sum << " / " << n;
      std::vector<int32_t> with_sign(n);
      with_sign[0] = static_cast<int32_t>(sum);
      EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, with_sign), static_cast<int32_t>(sum) / n) << sum << " / " << n;
      std::vector<int16_t> narrow(n);
      narrow[0] = static_cast<int16_t>(sum);
      EXPECT_EQ(reduced<int16_t>(fcclInt16, ReduceOp::avg, narrow), static_cast<int16_t>(sum) / n) << sum << " / " << n;
    }
  }
}

TEST(ReduceKernel, takes_any_byte_but_zero_for_true) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
    EXPECT_EQ(reduced<uint8_t>(fcclBool, op, {0, 0, 0}), 0) << name_of(op);
    EXPECT_EQ(reduced<uint8_t>(fcclBool, op, {0, 128, 2}), 1) << name_of(op);
  }
  for (const ReduceOp op : {ReduceOp::prod, ReduceOp::min}) {
    EXPECT_EQ(reduced<uint8_t>(fcclBool, op, {255, 1, 2}), 1) << name_of(op);
    EXPECT_EQ(reduced<uint8_t>(fcclBool, op, {1, 0, 2}), 0) << name_of(op);
  }
  EXPECT_EQ(reduced<uint8_t>(fcclBool, ReduceOp::sum, {7}), 1);
}

TEST(ReduceKernel, overflows_8_bit_floats_as_torch_does) {
  // 448 + 448, and 57344 + 57344.
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e4m3, ReduceOp::sum, {0x7e, 0x7e}), 0x7e)
      << "the largest number, for want of an infinity";
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e4m3, ReduceOp::sum, {0xfe, 0xfe}), 0xfe);
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e4m3, ReduceOp::sum, {0xfe, 0xff}), 0x7f);
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e4m3, ReduceOp::avg, {0x7e, 0x7e}), 0x7e);
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e5m2, ReduceOp::sum, {0x7b, 0x7b}), 0x7c);
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e5m2, ReduceOp::sum, {0xfb, 0xfb}), 0xfc);
}

TEST(ReduceKernel, wraps_integer_sums_and_products) {
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::sum, {INT32_MAX, 1}), INT32_MIN);
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::sum, {INT64_MIN, -1}), INT64_MAX);
  EXPECT_EQ(reduced<int8_t>(fcclInt8, ReduceOp::prod, {-128, -1}), -128);
  EXPECT_EQ(reduced<uint8_t>(fcclUint8, ReduceOp::prod, {16, 17}), 16);
  EXPECT_EQ(reduced<int16_t>(fcclInt16, ReduceOp::prod, {-32768, 3}), -32768);
  EXPECT_EQ(reduced<uint16_t>(fcclUint16, ReduceOp::prod, {65535, 65535}), 1);
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::prod, {INT64_MAX, INT64_MAX}), 1);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::premul_sum, {INT32_MIN, 3}, {-1, 5}), static_cast<int32_t>(0x8000000fu));
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::premul_sum, {INT64_MAX, 1}, {2, 1}), -1);
}

TEST(ReduceKernel, multiplies_each_source_by_its_own_scalar) {
  EXPECT_EQ(reduced<double>(fcclFloat64, ReduceOp::premul_sum, {1.0, 10.0, 100.0}, {2.0, 3.0, 4.0}), 432.0);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::premul_sum, {3.0f}, {0.5f}), 1.5f);
  // 2 * 0.5 + 4 * 2
  EXPECT_EQ(reduced<uint16_t>(fcclFloat16, ReduceOp::premul_sum, {0x4000, 0x4400}, {0x3800, 0x4000}), 0x4880);
  EXPECT_EQ(reduced<uint16_t>(fcclBfloat16, ReduceOp::premul_sum, {0x4000, 0x4080}, {0x3f00, 0x4000}), 0x4110);
}

TEST(ReduceKernel, adds_zeros_as_ieee_754_does) {
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {-0.0f}), 0x80000000u);
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {-0.0f, -0.0f, -0.0f}), 0x80000000u);
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {-0.0f, 0.0f}), 0u);
}

TEST(ReduceKernel, keeps_the_first_of_two_zeros_in_a_minimum_or_maximum) {
  for (ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    EXPECT_EQ(reduced_bits(op, {-0.0f, 0.0f, 0.0f}), 0x80000000u) << name_of(op);
    EXPECT_EQ(reduced_bits(op, {0.0f, -0.0f, -0.0f}), 0u) << name_of(op);
  }
}

TEST(ReduceKernel, lets_one_nan_through_whatever_nan_came_in) {
  const float negative_with_payload = std::bit_cast<float>(0xffc12345u);
  for (ReduceOp op : kOps) {
    for (size_t place = 0; place < 3; ++place) {
      std::vector<float> values{1.0f, 2.0f, 3.0f};
      values[place] = negative_with_payload;
      EXPECT_EQ(reduced_bits(op, values), kNanBits) << name_of(op) << ", source " << place;
    }
  }
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {negative_with_payload, kNan}), kNanBits);
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {kInfinity, -kInfinity}), kNanBits);
}

TEST(ReduceKernel, keeps_infinities) {
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::sum, {kInfinity, 1.0f, -1.0f}), kInfinity);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::avg, {-kInfinity, 1.0f}), -kInfinity);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::min, {1.0f, -kInfinity}), -kInfinity);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::max, {kInfinity, 1.0f}), kInfinity);
}

TEST(ReduceKernelDeathTest, refuses_to_run_without_sources) {
  float out = 0;
  EXPECT_DEATH(reduce_kernel(fcclFloat32, ReduceOp::sum)(&out, nullptr, 0, 1, nullptr), "between 1 and 65536 sources");
}

}  // namespace
}  // namespace fccl
