// The conformance suite of GPUs: kernels of sums.
#include "devices/conformance_sums.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>

#include "kernels/reduce.h"

namespace fccl::core {

void DeviceSums::SetUp() {
  DeviceConformance::SetUp();
  if (!IsSkipped() && !gpu().limits().why_no_sums.empty()) GTEST_SKIP() << gpu().limits().why_no_sums;
}

DeviceSums::OnGpu DeviceSums::put(const SumCase& sum, const std::vector<std::vector<std::byte>>& sources,
                                  const std::vector<Scalar>& factors, size_t offset) {
  OnGpu there;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::byte* const memory = allocate(MemoryPlace::this_device, offset + sources[i].size() + sizeof(Scalar));
    std::byte* const factor = memory + offset + sources[i].size();
    user().write(memory + offset, sources[i]);
    user().write(factor, std::as_bytes(std::span(&factors[i].bits, 1)).first(size_of(sum.dtype)));
    there.sources.push_back(memory + offset);
    there.factors.push_back(factor);
  }
  there.out = allocate(MemoryPlace::this_device, offset + sum.result_bytes() + 1) + offset;
  return there;
}

Reduction DeviceSums::reduction(const SumCase& sum, const OnGpu& there) {
  return {sum.dtype, sum.op, sum.widens, there.out, there.sources, there.factors, SumCase::kElements};
}

std::vector<std::byte> DeviceSums::by_processor(const SumCase& sum, const std::vector<std::vector<std::byte>>& sources,
                                                const std::vector<Scalar>& factors) {
  std::vector<std::byte> expected(sum.result_bytes(), kPoison);
  std::vector<const void*> addresses;
  for (const auto& source : sources) addresses.push_back(source.data());
  const auto kernel = sum.widens ? float32_kernel(sum.dtype, sum.op) : reduce_kernel(sum.dtype, sum.op);
  kernel(expected.data(), addresses.data(), static_cast<int>(sources.size()), SumCase::kElements, factors.data());
  return expected;
}

namespace {

constexpr SumCase kCases[] = {
    {fcclFloat32, ReduceOp::sum, false},       {fcclFloat32, ReduceOp::premul_sum, false},  {fcclFloat16, ReduceOp::avg, false},
    {fcclFloat16, ReduceOp::premul_sum, true}, {fcclBfloat16, ReduceOp::premul_sum, false}, {fcclBfloat16, ReduceOp::avg, true},
};

TEST_P(DeviceSums, have_the_bits_of_the_processor) {
  const Queue queue = make_queue();
  int iteration = 0;
  for (size_t count = 2; count <= 8; ++count) {
    ASSERT_TRUE(gpu().load(count));
    for (const SumCase& sum : kCases) {
      std::vector<std::vector<std::byte>> sources;
      std::vector<Scalar> factors;
      for (size_t i = 0; i < count; ++i) {
        sources.push_back(values(sum.source_bytes(), ++iteration));
        const auto bits = values(sizeof(Scalar), iteration + 1000);
        std::memcpy(&factors.emplace_back().bits, bits.data(), size_of(sum.dtype));
      }
      const OnGpu there = put(sum, sources, factors, static_cast<size_t>(iteration % 2));
      ASSERT_TRUE(gpu().reduce(queue, reduction(sum, there)));
      ASSERT_TRUE(becomes_idle(queue));
      EXPECT_EQ(read(there.out, sum.result_bytes()), by_processor(sum, sources, factors)) << count << " sources";
      EXPECT_EQ(read(there.out + sum.result_bytes(), 1).front(), kPoison);
    }
  }
}

// The second elements of pairs; all there are if FCCL_TEST_PAIRS says so, which takes a GPU less than a minute and a CPU
// longer.
std::vector<uint16_t> second_elements() {
  const char* const wanted = std::getenv("FCCL_TEST_PAIRS");
  const uint32_t step = wanted != nullptr && wanted == std::string("all") ? 1 : 4099;
  std::vector<uint16_t> elements;
  for (uint32_t bits = 0; bits < 1U << 16; bits += step) elements.push_back(static_cast<uint16_t>(bits));
  return elements;
}

TEST_P(DeviceSums, of_pairs_of_bfloat16_have_the_bits_of_the_processor) {
  constexpr size_t kFirsts = 1 << 16, kMostSeconds = 64, kMost = kFirsts * kMostSeconds;
  ASSERT_TRUE(gpu().load(2));
  const Queue queue = make_queue();
  const std::vector<uint16_t> seconds = second_elements();
  std::vector<uint16_t> first(kMost), second(kMost), expected(kMost);
  std::iota(first.begin(), first.end(), uint16_t{0});
  const std::array<const std::byte*, 2> sources{allocate(MemoryPlace::this_device, 2 * kMost),
                                                allocate(MemoryPlace::this_device, 2 * kMost)};
  std::byte* const out = allocate(MemoryPlace::this_device, 2 * kMost);
  user().write(const_cast<std::byte*>(sources[0]), std::as_bytes(std::span(first)));
  for (size_t begin = 0; begin < seconds.size(); begin += kMostSeconds) {
    const size_t count = std::min(kMostSeconds, seconds.size() - begin) * kFirsts;
    for (size_t i = 0; i < count; ++i) second[i] = seconds[begin + i / kFirsts];
    user().write(const_cast<std::byte*>(sources[1]), std::as_bytes(std::span(second).first(count)));
    ASSERT_TRUE(gpu().reduce(queue, {fcclBfloat16, ReduceOp::sum, false, out, sources, {}, count}));
    ASSERT_TRUE(becomes_idle(queue));
    const std::array<const void*, 2> addresses{first.data(), second.data()};
    reduce_kernel(fcclBfloat16, ReduceOp::sum)(expected.data(), addresses.data(), 2, count, nullptr);
    const std::vector<std::byte> found = read(out, 2 * count);
    ASSERT_TRUE(std::ranges::equal(found, std::as_bytes(std::span(expected).first(count)))) << "from second " << seconds[begin];
  }
}

TEST_P(DeviceSums, may_overwrite_a_source_and_follow_what_was_enqueued_before) {
  const SumCase sum{fcclFloat32, ReduceOp::sum, false};
  const std::vector sources = {values(sum.result_bytes(), 1), values(sum.result_bytes(), 2)};
  const Queue queue = make_queue();
  ASSERT_TRUE(gpu().load(2));
  OnGpu there = put(sum, {values(sum.result_bytes(), 3), sources[1]}, {{}, {}}, 0);
  std::byte* const late = allocate(MemoryPlace::this_device, sum.result_bytes());
  user().write(late, sources[0]);
  there.out = const_cast<std::byte*>(there.sources[0]);
  enqueue(queue, {wait_for(0, 1)});
  enqueue(queue, {there.out, late, sum.result_bytes()});
  ASSERT_TRUE(gpu().reduce(queue, reduction(sum, there)));
  enqueue(queue, {write(1, 1)});
  release_to_device(word(0), 1);
  ASSERT_TRUE(comes(1, 1));
  ASSERT_TRUE(becomes_idle(queue));
  EXPECT_EQ(read(there.out, sum.result_bytes()), by_processor(sum, sources, {{}, {}}));
}

TEST_P(DeviceSums, of_no_elements_write_nothing) {
  const SumCase sum{fcclFloat32, ReduceOp::sum, false};
  ASSERT_TRUE(gpu().load(2));
  const OnGpu there = put(sum, {values(8, 1), values(8, 2)}, {{}, {}}, 0);
  const Queue queue = make_queue();
  Reduction none = reduction(sum, there);
  none.count = 0;
  ASSERT_TRUE(gpu().reduce(queue, none));
  ASSERT_TRUE(becomes_idle(queue));
  EXPECT_EQ(read(there.out, 1).front(), kPoison);
}

TEST_P(DeviceSums, without_a_kernel_are_refused) {
  ASSERT_TRUE(gpu().load(2));
  const OnGpu there = put({fcclFloat32, ReduceOp::sum, false}, {values(8, 1), values(8, 2)}, {{}, {}}, 0);
  const Queue queue = make_queue();
  for (const SumCase& sum :
       {SumCase{fcclInt32}, SumCase{fcclFloat32, ReduceOp::max}, SumCase{fcclFloat32, ReduceOp::sum, true}}) {
    Reduction refused = reduction(sum, there);
    refused.count = 2;
    expect_refused(gpu().reduce(queue, refused));
  }
  Reduction alone = reduction({fcclFloat32, ReduceOp::sum, false}, there);
  alone.sources = alone.sources.first(1);
  expect_refused(gpu().reduce(queue, alone));
}

}  // namespace

}  // namespace fccl::core
