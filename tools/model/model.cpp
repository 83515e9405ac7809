// fccl-model: writes docs/results/modelled.md, which says what the price model predicts for machines on which FCCL has not
// run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/call.h"
#include "model/against_measured.h"
#include "model/init.h"
#include "model/machine.h"
#include "model/nccl_ring.h"
#include "model/published.h"
#include "plan/catalog.h"
#include "plan/choose.h"
#include "topology/costs.h"

namespace fccl::core::model {
namespace {

constexpr int kHosts[] = {2, 4, 8, 16, 32, 128, 512};
constexpr int kFewHosts[] = {2, 8, 32, 512};

struct Size {
  const char* name;
  double bytes;
  double PublishedRow::* published;
};
constexpr Size kSizes[] = {{"64M", 64 << 20, &PublishedRow::of_64m},
                           {"256M", 256 << 20, &PublishedRow::of_256m},
                           {"1G", 1 << 30, &PublishedRow::of_1g}};
constexpr Size kFewSizes[] = {kSizes[0], kSizes[2]};

CostConstants costs_of(const Machine& machine) { return default_costs("efa", machine.nic_megabits).value(); }

struct Case {
  const Machine& machine;
  fcclColl_t collective;
  const Size& size;
  int hosts;

  int gpus() const { return hosts * kGpus; }
  plan::Shape shape() const { return plan::Shape::of_equal_hosts(hosts, kGpus, machine.nics, costs_of(machine)); }
};

std::string milliseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e3); }

// A published bus bandwidth is size / time * (n - 1) / n.
std::optional<double> published_seconds(const Case& c) {
  if (&c.machine != &kP5 || c.collective != fcclCollAllGather) return std::nullopt;
  for (const PublishedRow& row : kP5AllGather)
    if (row.hosts == c.hosts) return c.size.bytes * (c.gpus() - 1) / c.gpus() / (row.*c.size.published * 1e9);
  return std::nullopt;
}

const char* largest_part(const plan::Time& time) {
  const std::pair<double, const char*> parts[] = {
      {time.latency, "latency"}, {time.message, "messages"}, {time.wire, "wire"}, {time.host, "host"}};
  return std::max_element(std::begin(parts), std::end(parts))->second;
}

// The time of FCCL's plan and its largest part. Pairwise is the plan unless the cell names another.
std::string plan_of(const Case& c) {
  const plan::Request request{c.collective, c.size.bytes / c.gpus()};
  const plan::Choice choice = plan::Chooser(c.shape()).choose(request);
  const std::string name = plan::kCatalog<plan::Price>[choice.algorithm].name;
  return fmt::format("{} {}{}", milliseconds(choice.time.total()), largest_part(choice.time),
                     name == "pairwise" ? "" : ", " + name);
}

// The least and the ring's time are those of either collective.
std::string row_of(const Machine& machine, const Size& size, int hosts) {
  const Case gather{machine, fcclCollAllGather, size, hosts}, reduction{machine, fcclCollReduceScatter, size, hosts};
  const plan::Request request{gather.collective, size.bytes / gather.gpus()};
  const double bound = plan::wire_minimum(request, gather.shape()) / machine.wire_bandwidth();
  const RingTime ring = nccl_ring(machine, hosts, size.bytes);
  const auto published = published_seconds(gather);
  const std::string found =
      published ? fmt::format(", {} ({:+.0f} %)", milliseconds(*published), 100 * (ring.seconds / *published - 1)) : "";
  return fmt::format("| {} | {} | {} | {} {}{} | {} | {} |\n", size.name, gather.gpus(), milliseconds(bound),
                     milliseconds(ring.seconds), ring.protocol, found, plan_of(gather), plan_of(reduction));
}

std::string table_of(const Machine& machine, std::span<const Size> sizes, std::span<const int> all_hosts) {
  std::string text = fmt::format(
      "## {}\n\n{} NICs of {} Gbit/s and {} GPUs.\nFCCL's costs are `{}`.\n\n"
      "| size | GPUs | least | ring, published (error) | AllGather, FCCL | ReduceScatter, FCCL |\n"
      "|---|---|---|---|---|---|\n",
      machine.name, machine.nics, machine.nic_megabits / 1000, kGpus, to_text({costs_of(machine)}));
  for (const Size& size : sizes)
    for (const int hosts : all_hosts) text += row_of(machine, size, hosts);
  return text + "\n";
}

// The time of one AllReduce in microseconds, its way and its largest part.
std::string all_reduce_of(int hosts, double bytes) {
  const plan::Shape shape = plan::Shape::of_equal_hosts(hosts, kGpus, kP5.nics, costs_of(kP5));
  const plan::Way way = plan::Chooser(shape).way_of({fcclCollAllReduce, bytes});
  const std::string rounds = way.algorithm < 0 ? fmt::format(" in {}", way.rounds) : "";
  return fmt::format("{:.0f} {}, {}{}", way.time.total() * 1e6, largest_part(way.time), way.name, rounds);
}

// The seconds of an init, and what all its processes send.
std::string init_of(int hosts) {
  constexpr std::size_t kEfaName = 32;
  const InitShape shape{hosts, kGpus, "efa", kP5.nics / kGpus, kEfaName};
  const double megabytes = init_traffic(shape).bytes / 1e6;
  return fmt::format("{:.2f} | {:.{}f}", init_seconds(shape, default_costs("tcp").value(), costs_of(kP5)), megabytes,
                     megabytes < 10 ? 2 : 0);
}

constexpr const char* kLatencies = R"(## Short calls and init on p5.48xlarge

**Modelled** are microseconds of one AllReduce, their largest part, and the way; for entries the rounds that follow each other.
Short content [travels with the entries](../explanation/algorithms.md#the-price) by which hosts tell each other of a call.
Modelled seconds of init count its [messages](../explanation/init.md) by tcp's costs, and 0.3 s of libfabric.
They leave out what libfabric does for each peer, and late processes; *MB* are those that all processes send.

| GPUs | 8 B | 4 KiB | 64 KiB | init, s | MB |
|---|---|---|---|---|---|
)";

std::string latencies() {
  std::string text = kLatencies;
  for (const int hosts : kHosts)
    text += fmt::format("| {} | {} | {} | {} | {} |\n", hosts * kGpus, all_reduce_of(hosts, 8), all_reduce_of(hosts, 4 << 10),
                        all_reduce_of(hosts, 64 << 10), init_of(hosts));
  return text + "\n";
}

std::string errors_in_words() {
  std::vector<double> errors;
  for (const Size& size : kSizes)
    for (const int hosts : kHosts)
      if (const auto published = published_seconds({kP5, fcclCollAllGather, size, hosts}))
        errors.push_back(std::abs(nccl_ring(kP5, hosts, size.bytes).seconds / *published - 1));
  std::sort(errors.begin(), errors.end());
  return fmt::format("In the median of {} rows it is {:.0f} percent, and at most {:.0f}.", errors.size(),
                     100 * errors[errors.size() / 2], 100 * errors.back());
}

constexpr const char* kPage = R"(# Modelled: p4d and p5 at 16 to 4096 GPUs

For people who ask what to expect on p4d and p5.

**FCCL has not run on such machines: every time of theirs is a model's.**
Others measured the *published* times with NCCL.
FCCL's times and the ring's come from two models that leave out different things: do not read their ratio as a speed-up.
FCCL moves memory of CPUs today; its times are those of its plans between hosts for buffers in GPUs, if the costs hold.
`build/fccl-model` writes this page, and a test compares.

*Size* is that of the larger buffer, as in nccl-tests.
Times are milliseconds of one AllGather or ReduceScatter; *least* and *ring* are those of either.

- **least**: the fewest bytes that must come into a host, over the speed of all its NICs.
  It has no latency, and nothing within the host.
- **ring**: NCCL's own formula of its ring, by the fastest of its three protocols; [below](#the-formula-of-the-ring).
- **published**: AllGather by nccl-tests on p5, out of place; nothing was found for ReduceScatter, nor for p4d.
  The source is `data/nccl_all_gather.csv` of `github.com/crazyguitar/aws-gpu-communication-benchmark` (fd167f97).
- **error**: of the ring's time against the published one.
  {}
- **FCCL**: [the price](../explanation/algorithms.md#the-price) of its plan with the costs that it assumes of EFA.
  Behind it stand its largest part, and the plan where that is not pairwise.
  The costs are p5's where there is a figure, and stand for p4d too, whose NVSwitch is slower and which has no RDMA write.
  The model leaves out waiting ranks, links that hosts share, and the posts of a message that is striped over NICs.
  It was compared with measurements on emulated hosts alone, [below](#against-measured).

)";

constexpr const char* kFormula = R"(## The formula of the ring

From `src/graph/tuning.cc` of NCCL 2.30.7 (5067397), for n GPUs on N hosts, in microseconds:

```text
T = base + (n - N) max(nvlink, k overhead) + (N - 1) (network + f latency) + size (n - 1) / n / (share B)
```

`tools/model/nccl_ring.cpp` has the constants of each protocol.
The latency is 75 us, which aws-ofi-nccl tells NCCL of p4d and p5 (`src/platform-aws.cpp`, 2daf7d3).
B is the speed of a host's NICs, or that of a GPU's NVLinks (12 of 20 GB/s, or 18 of 20.6) if it is less (`src/graph/topo.h`).
The formula stands for the rings that NCCL would find by a search on the machine.
The fastest protocol stands for the choice of the plug-in's tuner.
)";

}  // namespace
}  // namespace fccl::core::model

int main() {
  using namespace fccl::core::model;
  std::cout << fmt::format(fmt::runtime(kPage), errors_in_words()) << table_of(kP5, kSizes, kHosts)
            << table_of(kP4d, kFewSizes, kFewHosts) << latencies() << against_measured() << kFormula << std::flush;
  return std::cout ? 0 : 1;
}
