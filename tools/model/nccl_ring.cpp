// The formula and the constants of src/graph/tuning.cc in NCCL 2.30.7.
#include "model/nccl_ring.h"

#include <algorithm>
#include <iterator>

namespace fccl::core::model {
namespace {

// Microseconds.
struct Protocol {
  const char* name;
  double base;
  double nvlink_step, network_step;
  double share_of_bandwidth;
  int network_crossings;  // network latencies in a step between hosts: Simple also flushes
  int overheads_in_a_step;
};

constexpr Protocol kProtocols[] = {
    {"LL", 6.6, 0.6, 2.7, 0.5, 1, 1},
    {"LL128", 14, 1.9, 4.0, 0.92, 1, 1},
    {"Simple", 8.4, 3.4, 14, 1, 2, 3},
};

// Latency of the network as the plug-in reports it: src/platform-aws.cpp of aws-ofi-nccl 2daf7d3, for p4d and p5.
constexpr double kNetworkLatency = 75;

// Returns the cost of posting to the network, in every step.
double overhead(const Machine& machine) { return machine.has_amd_processors ? 2 : 1; }

// Returns NCCL's limit for LL between hosts, in bytes per second.
double most_of_ll(const Machine& machine, int hosts) {
  if (machine.has_amd_processors) return hosts == 2 ? 22.5e9 : 19.0e9;
  return hosts == 2 ? 39.0e9 : 20.4e9;
}

double seconds(const Protocol& protocol, const Machine& machine, int hosts, double bytes) {
  const int steps = hosts * kGpus - 1;
  const int network_steps = hosts - 1;
  const double nvlink_step = std::max(protocol.nvlink_step, protocol.overheads_in_a_step * overhead(machine));
  const double network_step = protocol.network_step + protocol.network_crossings * kNetworkLatency;
  const double latency = protocol.base + (steps - network_steps) * nvlink_step + network_steps * network_step;
  double bandwidth = protocol.share_of_bandwidth * std::min(machine.wire_bandwidth(), machine.nvlink_bandwidth);
  if (&protocol == std::begin(kProtocols)) bandwidth = std::min(bandwidth, most_of_ll(machine, hosts));
  return latency * 1e-6 + bytes / bandwidth * steps / (steps + 1);
}

}  // namespace

RingTime nccl_ring(const Machine& machine, int hosts, double bytes) {
  RingTime best{"", 0};
  for (const Protocol& protocol : kProtocols) {
    const double time = seconds(protocol, machine, hosts, bytes);
    if (best.seconds == 0 || time < best.seconds) best = {protocol.name, time};
  }
  return best;
}

}  // namespace fccl::core::model
