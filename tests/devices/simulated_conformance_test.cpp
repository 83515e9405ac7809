// The conformance suite over simulated GPUs: kind, late, with few connections, and over other seeds.
#include "devices/conformance_sums.h"
#include "devices/simulated_user.h"

namespace fccl::core {

namespace {

GpuFactory over(std::string name, simulated::GpuOptions options) {
  options.abort_on_misuse = false;
  const auto open = [options] { return Result<std::unique_ptr<GpuUser>>(std::make_unique<simulated::SimulatedUser>(options)); };
  return {std::move(name), open, options.connections > 1};
}

std::vector<GpuFactory> factories() {
  std::vector<GpuFactory> all = {over("kind", {.keeps_back = false, .delay_us = 0})};
  for (const int connections : {1, 2})
    all.push_back(over("connections_" + std::to_string(connections), {.connections = connections}));
  all.push_back(over("narrow", {.queue_entries = 16, .queue_slots = 24, .delay_us = 300}));
  for (uint64_t seed = 1; seed <= 3; ++seed) all.push_back(over("seed_" + std::to_string(seed), {.seed = seed}));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Simulated, DeviceConformance, testing::ValuesIn(factories()), name_of_factory);
INSTANTIATE_TEST_SUITE_P(Simulated, DeviceSums, testing::ValuesIn(factories()), name_of_factory);

}  // namespace

}  // namespace fccl::core
