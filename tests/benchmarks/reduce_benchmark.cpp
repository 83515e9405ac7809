// How fast the reduction kernels are: each type and operator, by number of sources and size; bytes are those of the output.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/reduce.h"

namespace fccl::core {
namespace {

// Sources of ones, which every operator keeps finite and normal.
std::vector<std::byte> ones(fcclDataType_t dtype, size_t bytes) {
  const uint64_t one = dtype == fcclFloat16      ? 0x3c00
                       : dtype == fcclBfloat16   ? 0x3f80
                       : dtype == fcclFloat32    ? 0x3f800000
                       : dtype == fcclFloat64    ? 0x3ff0000000000000
                       : dtype == fcclFloat8e4m3 ? 0x38
                       : dtype == fcclFloat8e5m2 ? 0x3c
                                                 : 1;
  std::vector<std::byte> source(bytes);
  for (size_t i = 0; i < bytes; i += size_of(dtype)) std::memcpy(source.data() + i, &one, size_of(dtype));
  return source;
}

void reduce(benchmark::State& state, fcclDataType_t dtype, ReduceOp op) {
  const auto source_count = static_cast<int>(state.range(0));
  const auto bytes = static_cast<size_t>(state.range(1));
  const std::vector<std::vector<std::byte>> sources(source_count, ones(dtype, bytes));
  std::vector<const void*> addresses;
  for (const auto& source : sources) addresses.push_back(source.data());
  Scalar one;
  std::memcpy(&one.bits, sources[0].data(), size_of(dtype));
  const std::vector<Scalar> scalars(source_count, one);
  std::vector<std::byte> out(bytes);
  const ReduceKernel kernel = reduce_kernel(dtype, op);
  for (auto _ : state) {
    kernel(out.data(), addresses.data(), source_count, bytes / size_of(dtype), scalars.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(1));
}

void register_all() {
  for (int type = 0; type < fcclNumTypes; ++type)
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::avg, ReduceOp::band,
                              ReduceOp::bor, ReduceOp::bxor, ReduceOp::premul_sum}) {
      const auto dtype = static_cast<fcclDataType_t>(type);
      if (reduce_kernel(dtype, op) == nullptr) continue;
      const std::string name = std::string(name_of(dtype)) + "/" + name_of(op);
      benchmark::RegisterBenchmark(name.c_str(), reduce, dtype, op)
          ->ArgNames({"sources", "bytes"})
          ->ArgsProduct({{2, 4, 8}, {8, 64 << 10, 1 << 20}});
    }
}

}  // namespace
}  // namespace fccl::core

int main(int argc, char** argv) {
  fccl::core::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
