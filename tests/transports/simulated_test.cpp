// The conformance suite over the simulated fabric: kind, like EFA, and worse.
#include "transports/conformance.h"
#include "transports/fabric.h"

namespace fccl::core {

namespace {

TransportFactory over(std::string name, simulated::FabricOptions options) {
  options.abort_on_misuse = false;
  return {std::move(name), [options](int processes, int rails) {
            simulated::FabricOptions with_rails = options;
            with_rails.limits.rails = rails;
            simulated::Fabric fabric(with_rails);
            std::vector<std::unique_ptr<Transport>> transports;
            for (int process = 0; process < processes; ++process) transports.push_back(fabric.open());
            return Result<std::vector<std::unique_ptr<Transport>>>(std::move(transports));
          }};
}

std::vector<TransportFactory> factories() {
  simulated::FabricOptions kind;
  std::vector<TransportFactory> all = {over("kind", kind)};
  simulated::FabricOptions like_efa{.faults = simulated::like_efa()};
  all.push_back(over("like_efa", like_efa));
  simulated::FabricOptions one_at_a_time{.faults = simulated::worse_than_efa()};
  one_at_a_time.limits.outstanding = 1;
  all.push_back(over("worse_one_at_a_time", one_at_a_time));
  simulated::FabricOptions narrow{.faults = simulated::worse_than_efa()};
  narrow.needs_polling = false;
  narrow.limits.immediate_bits = 16;
  narrow.limits.write_bytes = 1000;
  narrow.limits.message_bytes = 64;
  all.push_back(over("worse_and_narrow", narrow));
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    all.push_back(over("worse_" + std::to_string(seed), {.faults = simulated::worse_than_efa(), .seed = seed}));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Simulated, Conformance, testing::ValuesIn(factories()), name_of_factory);

}  // namespace

}  // namespace fccl::core
