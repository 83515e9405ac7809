// Compares the reduction kernels bit for bit with the reference.
#include "kernels/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <tuple>

#include "kernels/float_environment.h"
#include "unit/kernels/inputs.h"
#include "unit/kernels/instruction_sets.h"
#include "unit/kernels/reference.h"

namespace fccl::core {
namespace {

using namespace testing;  // the inputs and the reference

Bytes prefix(const Bytes& bytes, size_t size) { return Bytes(bytes.begin(), bytes.begin() + size); }

// Passes the kernel of every instruction set to `reduce`, one after the other.
void on_every_instruction_set(fcclDataType_t dtype, ReduceOp op, const std::function<void(ReduceKernel)>& reduce,
                              ReduceKernel (*find)(fcclDataType_t, ReduceOp) = reduce_kernel) {
  for (const int64_t set : testing::instruction_sets()) {
    SCOPED_TRACE(hwy::TargetName(set));
    const testing::InstructionSet chosen(set);
    reduce(find(dtype, op));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

class EveryKernel : public ::testing::TestWithParam<std::tuple<fcclDataType_t, ReduceOp>> {
 protected:
  // Expects the first `count` elements of `expected`, and no writes after them.
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
  constexpr size_t kCount = 333;  // several chunks and a rest
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

class EveryFloat32Kernel : public ::testing::TestWithParam<std::tuple<fcclDataType_t, ReduceOp>> {};

TEST_P(EveryFloat32Kernel, has_the_written_order_in_float32_for_every_number_of_sources_and_elements) {
  const auto [dtype, op] = GetParam();
  constexpr size_t kMost = 140;
  for (const int n : {1, 2, 3, 4, 5, 7, 8, 17}) {
    const auto sources = random_sources(dtype, n, kMost);
    const auto scalars = random_scalars(dtype, n);
    const auto addresses = addresses_of(sources);
    const Bytes expected = reference_reduce_to_float32(dtype, op, sources, scalars);
    const auto reduce_all = [&](ReduceKernel reduce) {
      for (size_t count = 0; count <= kMost; ++count) {
        const size_t size = count * sizeof(float);
        Bytes out(size + 64, kPoison);
        reduce(out.data(), addresses.data(), n, count, scalars.data());
        ASSERT_EQ(prefix(out, size), prefix(expected, size)) << n << " sources, count " << count;
        ASSERT_EQ(std::count(out.begin() + static_cast<ptrdiff_t>(size), out.end(), kPoison), 64) << count;
      }
    };
    on_every_instruction_set(dtype, op, reduce_all, float32_kernel);
  }
}

TEST_P(EveryFloat32Kernel, has_the_written_value_for_every_pair_of_edge_values) {
  const auto [dtype, op] = GetParam();
  const auto sources = edge_sources(dtype, 2);
  const auto scalars = random_scalars(dtype, 2);
  const Bytes expected = reference_reduce_to_float32(dtype, op, sources, scalars);
  const auto reduce_all = [&](ReduceKernel reduce) {
    Bytes out(expected.size(), kPoison);
    reduce(out.data(), addresses_of(sources).data(), 2, sources[0].size() / size_of(dtype), scalars.data());
    ASSERT_EQ(out, expected);
  };
  on_every_instruction_set(dtype, op, reduce_all, float32_kernel);
}

std::vector<std::tuple<fcclDataType_t, ReduceOp>> every_float32_kernel() {
  std::vector<std::tuple<fcclDataType_t, ReduceOp>> all;
  for (const auto& [dtype, op] : every_kernel())
    if (float32_kernel(dtype, op) != nullptr) all.emplace_back(dtype, op);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Float32Results, EveryFloat32Kernel, ::testing::ValuesIn(every_float32_kernel()), name_of_kernel);

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, ::testing::ValuesIn(every_kernel()), name_of_kernel);

}  // namespace
}  // namespace fccl::core
