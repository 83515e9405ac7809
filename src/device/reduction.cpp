// Numbers the kernels in the order of FCCL_EACH_SUM: by type, then operator, then sources.
#include "device/reduction.h"

#include <algorithm>
#include <iterator>

#include "base/rounding.h"

namespace fccl::core {
namespace {

#define FCCL_NAME(name, op, In, Out, sources) #name,
constexpr const char* kNames[] = {FCCL_EACH_SUM(FCCL_NAME)};
#undef FCCL_NAME
static_assert(std::size(kNames) == kSumKernels);

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::premul_sum};
constexpr size_t kSourceCounts = gpu::kMostSources - gpu::kLeastSources + 1;
// Bytes that a thread takes of each source at a time.
constexpr size_t kPack = 16;

std::optional<size_t> type_in_order(fcclDataType_t dtype, bool widens) {
  switch (dtype) {
    case fcclFloat32:
      return widens ? std::nullopt : std::optional<size_t>(0);
    case fcclFloat16:
      return widens ? 3 : 1;
    case fcclBfloat16:
      return widens ? 4 : 2;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<size_t> sum_kernel(fcclDataType_t dtype, ReduceOp op, bool widens, size_t sources) {
  const auto type = type_in_order(dtype, widens);
  const auto* const found = std::ranges::find(kOps, op);
  if (!type || found == std::end(kOps) || sources < gpu::kLeastSources || sources > gpu::kMostSources) return std::nullopt;
  const auto place = static_cast<size_t>(found - kOps);
  return (*type * std::size(kOps) + place) * kSourceCounts + sources - gpu::kLeastSources;
}

std::optional<size_t> sum_kernel(const Reduction& reduction) {
  const size_t sources = reduction.sources.size();
  if (reduction.op == ReduceOp::premul_sum && reduction.factors.size() != sources) return std::nullopt;
  return sum_kernel(reduction.dtype, reduction.op, reduction.widens, sources);
}

const char* name_of_sum_kernel(size_t kernel) { return kNames[kernel]; }

size_t sources_of_sum_kernel(size_t kernel) { return kernel % kSourceCounts + gpu::kLeastSources; }

gpu::SumWork work_of(const Reduction& reduction) {
  gpu::SumWork work{reduction.out, {}, {}, reduction.count};
  std::ranges::copy(reduction.sources, work.sources);
  if (reduction.op == ReduceOp::premul_sum) std::ranges::copy(reduction.factors, work.factors);
  return work;
}

unsigned blocks_of(const Reduction& reduction) {
  const size_t packs = divided_up(reduction.count * size_of(reduction.dtype), kPack);
  const size_t useful = divided_up(packs, size_t{gpu::kThreadsPerBlock});
  return static_cast<unsigned>(std::clamp<size_t>(useful, 1, static_cast<size_t>(reduction.blocks)));
}

}  // namespace fccl::core
