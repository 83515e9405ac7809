// Compares sums of two levels bit for bit with the reference, and with sums of one level.
#include <gtest/gtest.h>

#include <string>

#include "kernels/reduce.h"
#include "unit/kernels/inputs.h"
#include "unit/kernels/instruction_sets.h"

namespace fccl::core {
namespace {

using namespace testing;  // the inputs and the reference

constexpr size_t kCounts[] = {1, 7, 131, 333};  // less than a chunk, and whole chunks with a rest

int total_of(const std::vector<int>& ranks) {
  int total = 0;
  for (const int of_host : ranks) total += of_host;
  return total;
}

// One operator on one type, with partials of one type on the wire.
class EverySum : public ::testing::TestWithParam<std::tuple<std::tuple<fcclDataType_t, ReduceOp>, WireType>> {
 protected:
  // Sums by the kernels of the chosen instruction set. The buffers lie `shift` bytes after an aligned address, and the kernels
  // must not write around them.
  Bytes two_levels(const std::vector<Bytes>& sources, const std::vector<Scalar>& scalars, const std::vector<int>& ranks,
                   size_t shift = 0) const {
    const size_t count = sources[0].size() / size_of(dtype);
    std::vector<Bytes> partials;
    size_t first = 0;
    for (const int of_host : ranks) {
      const std::vector<Bytes> local(sources.begin() + first, sources.begin() + first + of_host);
      const std::vector<Scalar> factors(scalars.begin() + first, scalars.begin() + first + of_host);
      partials.push_back(level(partial_kernel(dtype, op, wire), local, factors, count, size_of(partial), shift));
      first += of_host;
    }
    const std::vector<Scalar> divisor{{sources.size()}};
    return level(total_kernel(dtype, op, wire), partials, divisor, count, size_of(dtype), shift);
  }

  static Bytes level(ReduceKernel kernel, const std::vector<Bytes>& sources, const std::vector<Scalar>& scalars, size_t count,
                     size_t element, size_t shift) {
    std::vector<Bytes> shifted;
    std::vector<const void*> addresses;
    for (const Bytes& source : sources) {
      shifted.emplace_back(shift).insert(shifted.back().end(), source.begin(), source.end());
      addresses.push_back(shifted.back().data() + shift);
    }
    Bytes out(shift + count * element + 64, kPoison);
    const auto begin = out.begin() + static_cast<ptrdiff_t>(shift), end = out.end() - 64;
    kernel(out.data() + shift, addresses.data(), static_cast<int>(sources.size()), count, scalars.data());
    EXPECT_EQ(Bytes(out.begin(), begin), Bytes(shift, kPoison)) << "wrote before the first element";
    EXPECT_EQ(Bytes(end, out.end()), Bytes(64, kPoison)) << "wrote behind element " << count;
    return Bytes(begin, end);
  }

  void expect(const Bytes& expected, const std::vector<Bytes>& sources, const std::vector<Scalar>& scalars,
              const std::vector<int>& ranks, size_t shift = 0) const {
    for (const int64_t set : instruction_sets()) {
      const InstructionSet chosen(set);
      ASSERT_EQ(two_levels(sources, scalars, ranks, shift), expected)
          << hwy::TargetName(set) << ", " << ::testing::PrintToString(ranks) << " ranks, shift " << shift;
    }
  }

  Bytes written(const std::vector<Bytes>& sources, const std::vector<Scalar>& scalars, const std::vector<int>& ranks) const {
    return reference_reduce(dtype, op, sources, scalars, {ranks, wire == WireType::float32});
  }

  const fcclDataType_t dtype = std::get<0>(std::get<0>(GetParam()));
  const ReduceOp op = std::get<1>(std::get<0>(GetParam()));
  const WireType wire = std::get<1>(GetParam());
  const fcclDataType_t partial = partial_type(dtype, wire);
};

TEST_P(EverySum, has_the_written_order_for_every_number_of_hosts_and_ranks) {
  for (const int hosts : {1, 2, 3, 4, 5, 8})
    for (const int ranks : {1, 2, 3, 4})
      for (const size_t count : kCounts) {
        const auto sources = random_sources(dtype, hosts * ranks, count);
        const auto scalars = random_scalars(dtype, hosts * ranks);
        const std::vector<int> each(hosts, ranks);
        expect(written(sources, scalars, each), sources, scalars, each);
      }
}

TEST_P(EverySum, has_the_written_order_where_hosts_have_unequal_numbers_of_ranks) {
  for (const std::vector<int>& ranks : std::vector<std::vector<int>>{{3, 1}, {1, 4, 2}, {2, 2, 1, 5, 3}}) {
    const auto sources = random_sources(dtype, total_of(ranks), 131);
    const auto scalars = random_scalars(dtype, total_of(ranks));
    expect(written(sources, scalars, ranks), sources, scalars, ranks);
  }
}

TEST_P(EverySum, has_the_written_value_for_every_pair_of_edge_values) {
  for (const std::vector<int>& ranks : std::vector<std::vector<int>>{{1}, {2}, {1, 1}, {2, 1}, {1, 3}}) {
    const auto sources = edge_sources(dtype, total_of(ranks));
    const auto scalars = random_scalars(dtype, total_of(ranks));
    expect(written(sources, scalars, ranks), sources, scalars, ranks);
  }
}

TEST_P(EverySum, works_at_any_alignment) {
  const std::vector<int> ranks{2, 1, 3};
  const auto sources = random_sources(dtype, 6, 131);
  const auto scalars = random_scalars(dtype, 6);
  for (const size_t shift : {1, 2, 3, 5, 8, 31, 63}) expect(written(sources, scalars, ranks), sources, scalars, ranks, shift);
}

TEST_P(EverySum, may_write_a_total_over_the_beginning_of_any_one_partial) {
  constexpr size_t kCount = 333;
  const std::vector<Scalar> divisor{{7}};
  for (const int n : {1, 2, 3, 4, 5}) {
    const auto partials = random_sources(partial, n, kCount);
    for (const int64_t set : instruction_sets()) {
      const InstructionSet chosen(set);
      const ReduceKernel total = total_kernel(dtype, op, wire);
      Bytes expected(kCount * size_of(dtype));
      total(expected.data(), addresses_of(partials).data(), n, kCount, divisor.data());
      for (int over = 0; over < n; ++over) {
        auto overwritten = partials;
        total(overwritten[over].data(), addresses_of(overwritten).data(), n, kCount, divisor.data());
        auto left = partials;
        std::ranges::copy(expected, left[over].begin());
        ASSERT_EQ(overwritten, left) << hwy::TargetName(set) << ", " << n << " partials, over " << over;
      }
    }
  }
}

std::string name_of_sum(const ::testing::TestParamInfo<EverySum::ParamType>& info) {
  const auto [kernel, wire] = info.param;
  return std::string(name_of(std::get<0>(kernel))) + "_" + name_of(std::get<1>(kernel)) +
         (wire == WireType::float32 ? "_float32_wire" : "_call_wire");
}

INSTANTIATE_TEST_SUITE_P(TwoLevels, EverySum,
                         ::testing::Combine(::testing::ValuesIn(every_kernel()),
                                            ::testing::Values(WireType::call, WireType::float32)),
                         name_of_sum);

class EverySumOfUnroundedPartials : public EverySum {};

TEST_P(EverySumOfUnroundedPartials, has_the_bits_of_one_level_where_hosts_have_an_equal_power_of_two_of_ranks) {
  for (const int hosts : {1, 2, 3, 4, 5, 7, 8})
    for (const int ranks : {1, 2, 4, 8}) {
      const auto sources = random_sources(dtype, hosts * ranks, 131);
      const auto scalars = random_scalars(dtype, hosts * ranks);
      Bytes one_level(sources[0].size());
      reduce_kernel(dtype, op)(one_level.data(), addresses_of(sources).data(), hosts * ranks, 131, scalars.data());
      expect(one_level, sources, scalars, std::vector<int>(hosts, ranks));
    }
}

// A minimum or maximum equals one of its sources, so it is never rounded.
std::vector<EverySum::ParamType> sums_of_unrounded_partials() {
  std::vector<EverySum::ParamType> all;
  for (const auto& kernel : every_kernel())
    for (const WireType wire : {WireType::call, WireType::float32}) {
      const auto [dtype, op] = kernel;
      const bool never_rounds = op == ReduceOp::min || op == ReduceOp::max;
      if (never_rounds || partial_type(dtype, wire) == partial_type(dtype, WireType::float32)) all.emplace_back(kernel, wire);
    }
  return all;
}

INSTANTIATE_TEST_SUITE_P(TwoLevels, EverySumOfUnroundedPartials, ::testing::ValuesIn(sums_of_unrounded_partials()),
                         name_of_sum);

TEST(TwoLevels, round_the_sum_once_with_float32_on_the_wire_and_once_per_level_without) {
  // 256 + 1 is a tie in bfloat16, to even: the partial of the first host is 256 or, in float32, 257.
  const uint16_t sources[] = {0x4380, 0x3f80, 0x3f80};
  const void* first_host[] = {&sources[0], &sources[1]};
  for (const WireType wire : {WireType::call, WireType::float32}) {
    float partials[2] = {};
    const void* second_host[] = {&sources[2]};
    const void* both[] = {&partials[0], &partials[1]};
    const ReduceKernel partial = partial_kernel(fcclBfloat16, ReduceOp::sum, wire);
    partial(&partials[0], first_host, 2, 1, nullptr);
    partial(&partials[1], second_host, 1, 1, nullptr);
    uint16_t total = 0;
    total_kernel(fcclBfloat16, ReduceOp::sum, wire)(&total, both, 2, 1, nullptr);
    EXPECT_EQ(total, wire == WireType::float32 ? 0x4381 : 0x4380);
  }
}

TEST(TwoLevels, divide_an_average_by_the_ranks_of_all_hosts_up_to_two_to_the_24) {
  const auto average = [](fcclDataType_t dtype, auto sum, uint64_t ranks) {
    const void* source = &sum;
    const Scalar divisor{ranks};
    auto out = sum;
    total_kernel(dtype, ReduceOp::avg, WireType::call)(&out, &source, 1, 1, &divisor);
    return out;
  };
  for (const uint64_t ranks : {1u, 3u, 255u, 256u, 65535u, 65537u, (1u << 24) - 1, 1u << 24})
    for (const int64_t multiple : {1, 5, 127}) {
      const auto sum = static_cast<int64_t>(ranks) * multiple;
      EXPECT_EQ(average(fcclInt64, sum, ranks), multiple);
      EXPECT_EQ(average(fcclInt64, sum - 1, ranks), ranks == 1 ? multiple - 1 : (sum - 1) / static_cast<int64_t>(ranks));
      EXPECT_EQ(average(fcclInt64, -sum + 1, ranks), -((sum - 1) / static_cast<int64_t>(ranks)));
      EXPECT_EQ(average(fcclUint32, static_cast<uint32_t>(sum - 1), ranks),
                static_cast<uint32_t>(sum - 1) / static_cast<uint32_t>(ranks));
      EXPECT_EQ(average(fcclUint16, static_cast<uint16_t>(sum - 1), ranks), static_cast<uint16_t>(sum - 1) / ranks);
      EXPECT_EQ(average(fcclFloat32, 5.0f, ranks), 5.0f / static_cast<float>(ranks));
    }
}

TEST(TwoLevels, carry_narrow_floats_as_float32_only_if_asked_and_all_else_as_itself) {
  for (int type = 0; type < fcclNumTypes; ++type) {
    const auto dtype = static_cast<fcclDataType_t>(type);
    const bool is_narrow = dtype == fcclFloat16 || dtype == fcclBfloat16 || dtype == fcclFloat8e4m3 || dtype == fcclFloat8e5m2;
    EXPECT_EQ(partial_type(dtype, WireType::call), dtype);
    EXPECT_EQ(partial_type(dtype, WireType::float32), is_narrow ? fcclFloat32 : dtype);
  }
}

TEST(TwoLevels, have_kernels_wherever_one_level_has_one) {
  for (int type = -1; type <= fcclNumTypes; ++type)
    for (const ReduceOp op : testing::kEveryOperator)
      for (const WireType wire : {WireType::call, WireType::float32}) {
        const auto dtype = static_cast<fcclDataType_t>(type);
        const bool is_missing = reduce_kernel(dtype, op) == nullptr;
        EXPECT_EQ(partial_kernel(dtype, op, wire) == nullptr, is_missing) << type << " " << name_of(op);
        EXPECT_EQ(total_kernel(dtype, op, wire) == nullptr, is_missing) << type << " " << name_of(op);
      }
}

TEST(TwoLevelsDeathTest, refuse_an_average_of_no_ranks_or_too_many) {
  float value = 0;
  const void* source = &value;
  const Scalar none{0}, too_many{(1 << 24) + 1};
  const ReduceKernel total = total_kernel(fcclFloat32, ReduceOp::avg, WireType::call);
  EXPECT_DEATH(total(&value, &source, 1, 1, &none), "between 1 and 16777216 ranks");
  EXPECT_DEATH(total(&value, &source, 1, 1, &too_many), "between 1 and 16777216 ranks");
}

}  // namespace
}  // namespace fccl::core
