// Sums: one element after the other, where a GPU has a thread for each.
#include "devices/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "devices/address_space.h"
#include "devices/shadow.h"

namespace fccl::core::simulated {

namespace {

using Why = Refusal::Why;

template <class Kind>
void run(const gpu::SumWork& work) {
  float factors[Kind::kSources];
  gpu::load_factors<Kind>(work, factors);
  gpu::sum_elements<Kind>(work, factors, 0, 1);
}

#define FCCL_SUM(name, op, In, Out, sources)                    \
  {#name,                                                       \
   run<gpu::Sum<gpu::SumOp::op, gpu::In, gpu::Out, (sources)>>, \
   (sources),                                                   \
   gpu::SumOp::op == gpu::SumOp::premul_sum,                    \
   sizeof(gpu::In::Stored),                                     \
   sizeof(gpu::Out::Stored)},
constexpr SumKernel kSums[] = {FCCL_EACH_SUM(FCCL_SUM)};
#undef FCCL_SUM

// Memory that a kernel of the GPU uses.
Answer<std::byte*> reach(Gpu& gpu, const void* begin, size_t bytes, bool writes) {
  const auto* const address = static_cast<const std::byte*>(begin);
  auto found = gpu.memory().reach(writes ? "to" : "from", address, bytes, 1, 0);
  if (!found) return found;
  Region region;
  find_region(address, region);
  const bool is_of_other = region.kind == Region::Kind::piece && region.gpu != &gpu;
  const bool is_let = !is_of_other || ((writes ? region.writers : region.readers) >> gpu.options().ordinal & 1) != 0;
  if (is_let && !(writes && region.read_only)) return found;
  return refuse(Why::invalid, fmt::format("a kernel of {} {} {}, which it was not let use so", gpu.context().name(),
                                          writes ? "writes to" : "reads", fmt::ptr(address)));
}

}  // namespace

std::span<const SumKernel> every_sum() { return kSums; }

const SumKernel* find_sum(std::string_view name) {
  const auto* const found = std::ranges::find(kSums, name, &SumKernel::name);
  return found == std::end(kSums) ? nullptr : found;
}

Answer<void> launch(Gpu& gpu, GpuQueue* queue, const SumKernel& sum, const gpu::SumWork& work) {
  if (!gpu.progress().loaded.holds(sum.number()))
    return refuse(Why::invalid,
                  fmt::format("the kernel {} was launched on {} and is not loaded", sum.name, gpu.context().name()));
  gpu::SumWork real_work = work;
  for (int source = 0; source < sum.sources; ++source) {
    const auto from = reach(gpu, work.sources[source], work.count * sum.source_bytes, false);
    if (!from) return tl::make_unexpected(from.error());
    real_work.sources[source] = *from;
    if (!sum.has_factors) continue;
    const auto factor = reach(gpu, work.factors[source], sum.source_bytes, false);
    if (!factor) return tl::make_unexpected(factor.error());
    real_work.factors[source] = *factor;
  }
  const size_t bytes = work.count * sum.result_bytes;
  if (const auto to = reach(gpu, work.out, bytes, true); !to) return tl::make_unexpected(to.error());
  return gpu.launch(queue, [&sum, real_work, bytes, queue] {
    if (queue->skips()) return;
    std::vector<std::byte> result(bytes);
    gpu::SumWork here = real_work;
    here.out = result.data();
    sum.run(here);
    store(static_cast<std::byte*>(real_work.out), result);
  });
}

}  // namespace fccl::core::simulated
