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

}  // namespace
}  // namespace fccl
