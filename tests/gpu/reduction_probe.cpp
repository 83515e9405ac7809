// Question 5: how many SMs does a sum in tree order need to keep up with memory?
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "device.h"
#include "kernels.h"
#include "probe.h"
#include "samples.h"

namespace {

using namespace fccl::gpu;

constexpr size_t kBytes = size_t{128} << 20;        // of each source and of the result
constexpr size_t kCheckedElements = (1 << 20) + 5;  // no multiple of a vector: the last ones go one by one
constexpr int kRepeats = 10;
constexpr std::byte kPoison{0xa5};

uint32_t seed_of(int source) { return 50 + static_cast<uint32_t>(source); }
size_t bytes_of(Element element) { return element == Element::bf16 ? 2 : 4; }
const char* name_of(Element element) { return element == Element::bf16 ? "bf16" : "fp32"; }

// Numbers between -2 and 2 with a full mantissa, of which sums round.
float input(int source, size_t index) {
  const uint32_t bits = pattern(seed_of(source), index);
  return static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-30f;
}

uint16_t to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float wide = 0;
  std::memcpy(&wide, &bits, sizeof(wide));
  return wide;
}

// A source as it lies in memory.
std::vector<std::byte> source_bytes(Element element, int source, size_t count) {
  std::vector<std::byte> bytes(count * bytes_of(element));
  for (size_t index = 0; index < count; ++index) {
    const float value = input(source, index);
    const uint16_t narrow = to_bf16(value);
    if (element == Element::bf16) {
      std::memcpy(&bytes[index * 2], &narrow, 2);
    } else {
      std::memcpy(&bytes[index * 4], &value, 4);
    }
  }
  return bytes;
}

// The sum of the sources from `first` on, `count` of them: a tree split at the largest power of two below their number.
float tree_sum(Element element, int first, int count, size_t index) {
  if (count == 1) return element == Element::bf16 ? from_bf16(to_bf16(input(first, index))) : input(first, index);
  int left = 1;
  while (left * 2 < count) left *= 2;
  return tree_sum(element, first, left, index) + tree_sum(element, first + left, count - left, index);
}

// Elements of the result, and of the guard behind it, that are not what they must be.
size_t wrong_elements(const Reduction& reduction, const std::vector<std::byte>& result) {
  size_t wrong = 0;
  const size_t width = bytes_of(reduction.element);
  for (size_t index = 0; index < reduction.elements; ++index) {
    const float sum = tree_sum(reduction.element, 0, reduction.count, index);
    const uint16_t narrow = to_bf16(sum);
    const void* const expected = reduction.element == Element::bf16 ? static_cast<const void*>(&narrow) : &sum;
    wrong += std::memcmp(&result[index * width], expected, width) != 0;
  }
  const auto guard = result.begin() + static_cast<std::ptrdiff_t>(reduction.elements * width);
  return wrong + static_cast<size_t>(std::count_if(guard, result.end(), [](std::byte each) { return each != kPoison; }));
}

void check_sums(Rank& rank, Element element) {
  constexpr size_t kGuard = 4096;
  const size_t bytes = kCheckedElements * bytes_of(element);
  const Stream stream = make_stream();
  const DeviceMemory out(bytes + kGuard);
  std::vector<DeviceMemory> sources;
  Reduction reduction{{}, 0, element, out.get(), kCheckedElements};
  for (int source = 0; source < kMostSources; ++source) {
    sources.emplace_back(bytes);
    const auto content = source_bytes(element, source, kCheckedElements);
    GPU_CHECK(cudaMemcpy(sources.back().get(), content.data(), bytes, cudaMemcpyHostToDevice));
    reduction.sources[source] = sources.back().get();
  }
  for (const int count : {1, 2, 4, 8}) {
    for (const int blocks : {1, 64}) {
      reduction.count = count;
      std::vector<std::byte> result(out.size());
      GPU_CHECK(cudaMemset(out.get(), static_cast<int>(kPoison), out.size()));
      GPU_CHECK(cudaDeviceSynchronize());
      launch_reduction(stream.get(), reduction, blocks);
      drain(stream, rank.deadline(), "a sum to check");
      GPU_CHECK(cudaMemcpy(result.data(), out.get(), result.size(), cudaMemcpyDeviceToHost));
      const size_t wrong = wrong_elements(reduction, result);
      rank.report(
          works("sum of " + std::to_string(count) + " in " + name_of(element) + ", " + std::to_string(blocks) + " blocks",
                wrong == 0, std::to_string(wrong) + " of " + std::to_string(kCheckedElements) + " elements differ"));
    }
  }
}

// Bytes read and written per second, of one call that `enqueue` makes.
template <class Enqueue>
Samples memory_rate(Rank& rank, double bytes, const Enqueue& enqueue) {
  const Stream stream = make_stream();
  const Event begin = make_event(), end = make_event();
  enqueue(stream);
  Samples rate;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    GPU_CHECK(cudaEventRecord(begin.get(), stream.get()));
    enqueue(stream);
    GPU_CHECK(cudaEventRecord(end.get(), stream.get()));
    drain(stream, rank.deadline(), "a timed sum");
    rate.add(bytes / seconds_between(begin, end) * 1e-9);
  }
  return rate;
}

void rate_by_blocks(Rank& rank, Element element) {
  const DeviceMemory out(kBytes);
  std::vector<DeviceMemory> sources;
  Reduction reduction{{}, 0, element, out.get(), kBytes / bytes_of(element)};
  const Stream filling = make_stream();
  for (int source = 0; source < kMostSources; ++source) {
    sources.emplace_back(kBytes);
    launch_fill(filling.get(), sources.back().get(), kBytes, seed_of(source));
    reduction.sources[source] = sources.back().get();
  }
  drain(filling, rank.deadline(), "filling the sources");
  const Samples copies = memory_rate(rank, 2.0 * kBytes, [&](const Stream& stream) {
    GPU_CHECK(cudaMemcpyAsync(out.get(), sources[0].get(), kBytes, cudaMemcpyDeviceToDevice, stream.get()));
  });
  rank.report(copies.row("the bound: cudaMemcpyAsync of 128 MiB", "GB/s", "bytes read and written"));
  for (const int count : {1, 2, 4, 8}) {
    for (const int blocks : {1, 2, 4, 8, 16, 32, 64}) {
      reduction.count = count;
      const Samples rate = memory_rate(rank, (count + 1.0) * kBytes,
                                       [&](const Stream& stream) { launch_reduction(stream.get(), reduction, blocks); });
      const std::string what =
          "sum of " + std::to_string(count) + " in " + name_of(element) + ", " + std::to_string(blocks) + " blocks";
      const auto rounded = std::to_string(static_cast<long>(rate.median()));
      rank.report(measured(what, rate.median() / copies.median() * 100, "% of the bound", rounded + " GB/s read and written"));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Case> cases;
  for (const Element element : {Element::bf16, Element::fp32}) {
    cases.push_back({std::string("values, ") + name_of(element), 1, 60, [element](Rank& rank) { check_sums(rank, element); }});
    cases.push_back(
        {std::string("rates, ") + name_of(element), 1, 60, [element](Rank& rank) { rate_by_blocks(rank, element); }});
  }
  return run_probe(5, cases, argc, argv);
}
