// Counts hosts, columns and their NICs.
#include "plan/shape.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "base/check.h"
#include "topology/rails.h"

namespace fccl::core::plan {
namespace {

int serving(Host host, int columns) {
  // Ranks outside the columns use no NIC.
  host.ranks.resize(static_cast<size_t>(columns));
  std::set<int> nics;
  for (const std::vector<int>& of_column : nics_of_ranks(host)) nics.insert(of_column.begin(), of_column.end());
  return static_cast<int>(nics.size());
}

}  // namespace

Shape shape_of(const Topology& topology, const CostConstants& constants) {
  const auto& hosts = topology.hosts();
  const auto ranks_of = [](const Host& host) { return host.ranks.size(); };
  const size_t fewest = ranks_of(*std::ranges::min_element(hosts, {}, ranks_of));
  const size_t most = ranks_of(*std::ranges::max_element(hosts, {}, ranks_of));
  Shape shape{static_cast<int>(hosts.size()), topology.ranks(), static_cast<int>(most), static_cast<int>(fewest), 0, constants};
  check(shape.columns > 0, "every host has a rank");
  for (const Host& host : hosts) {
    const int rails = serving(host, shape.columns);
    shape.rails = shape.rails == 0 ? rails : std::min(shape.rails, rails);
    check(shape.rails > 0, "every host has a NIC");
  }
  return shape;
}

int slowest_nic(const Topology& topology) {
  int slowest = 0;
  for (const Host& host : topology.hosts())
    for (const Nic& nic : host.nics) {
      if (nic.megabits == 0) return 0;
      slowest = slowest == 0 ? nic.megabits : std::min(slowest, nic.megabits);
    }
  return slowest;
}

}  // namespace fccl::core::plan
