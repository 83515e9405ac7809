// Checks the invariants of a topology while it is made.
#include "topology/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/check.h"

namespace fccl::core {
namespace {

constexpr size_t kLongestName = 255;

// True if the name can be one word of the text form.
bool is_name(const std::string& name) {
  const auto visible = [](char c) { return c > ' ' && c <= '~'; };
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), visible);
}

bool is_numa(const std::optional<int>& numa) { return !numa || (*numa >= 0 && *numa <= Topology::kMostNuma); }

std::string fault_of(const Place& place) {
  if (!is_numa(place.numa)) return fmt::format("sits at NUMA node {}, which is none", *place.numa);
  if (place.under.size() > Topology::kMostBridges)
    return fmt::format("sits below {} PCI bridges, more than {}", place.under.size(), Topology::kMostBridges);
  return {};
}

std::string fault_of_nics(const Host& host) {
  std::set<std::string> names;
  for (const Nic& nic : host.nics) {
    if (!is_name(nic.name)) return "has a NIC whose name is empty, too long or not of visible ASCII characters";
    if (!names.insert(nic.name).second) return fmt::format("has two NICs named {}", nic.name);
    if (nic.megabits < 0 || nic.megabits > Topology::kMostMegabits)
      return fmt::format("has the NIC {} of {} Mbit/s, which is not a speed", nic.name, nic.megabits);
    if (std::string fault = fault_of(nic.place); !fault.empty()) return fmt::format("has the NIC {} that {}", nic.name, fault);
  }
  return {};
}

std::string fault_of_gpus(const Host& host) {
  std::set<int> indices;
  for (const Gpu& gpu : host.gpus) {
    if (gpu.index < 0 || !indices.insert(gpu.index).second)
      return fmt::format("has a GPU with the number {}, which is negative or another GPU's", gpu.index);
    if (std::string fault = fault_of(gpu.place); !fault.empty()) return fmt::format("has the GPU {} that {}", gpu.index, fault);
  }
  for (const Rank& rank : host.ranks) {
    if (rank.gpu && !indices.contains(*rank.gpu)) return fmt::format("has no GPU {} for rank {}", *rank.gpu, rank.number);
    if (rank.gpu && rank.numa) return fmt::format("has rank {} both at a GPU and at a NUMA node", rank.number);
    if (!is_numa(rank.numa)) return fmt::format("has rank {} at NUMA node {}, which is none", rank.number, *rank.numa);
  }
  return {};
}

std::string fault_of(const Host& host) {
  if (!is_name(host.name)) return "has a name that is empty, too long or not of visible ASCII characters";
  if (host.nics.size() > Topology::kMostDevices || host.gpus.size() > Topology::kMostDevices)
    return fmt::format("has more than {} NICs or GPUs", Topology::kMostDevices);
  if (std::string fault = fault_of_nics(host); !fault.empty()) return fault;
  return fault_of_gpus(host);
}

auto refuse(const Host& host, const std::string& fault) {
  return fail(fcclInvalidUsage, fmt::format("no topology: host {} {}", host.name, fault));
}

}  // namespace

bool comes_before(const Nic& a, const Nic& b) {
  const auto key = [](const Nic& nic) { return std::tuple(!nic.place.pci, nic.place.pci, nic.name.size(), nic.name); };
  return key(a) < key(b);
}

Place place_of(const Host& host, const Rank& rank) {
  if (!rank.gpu) return {.numa = rank.numa};
  const auto gpu = std::find_if(host.gpus.begin(), host.gpus.end(), [&](const Gpu& each) { return each.index == *rank.gpu; });
  check(gpu != host.gpus.end(), "a rank's GPU is one of its host's");
  return gpu->place;
}

Result<Topology> Topology::of(std::vector<Host> hosts) {
  Topology topology;
  topology.hosts_ = std::move(hosts);
  for (const Host& host : topology.hosts_)
    if (const std::string fault = fault_of(host); !fault.empty()) return refuse(host, fault);
  FCCL_TRY(topology.seat_ranks());
  return topology;
}

Result<void> Topology::seat_ranks() {
  size_t count = 0;
  for (const Host& host : hosts_) count += host.ranks.size();
  if (count > kMostRanks)
    return fail(fcclInvalidUsage, fmt::format("no topology: it has {} ranks, more than {}", count, kMostRanks));
  seats_.resize(count);
  int first_before = -1;
  for (size_t h = 0; h < hosts_.size(); ++h) {
    const Host& host = hosts_[h];
    int before = -1;
    for (size_t i = 0; i < host.ranks.size(); ++i) {
      const int number = host.ranks[i].number;
      if (number < 0 || static_cast<size_t>(number) >= count)
        return refuse(host, fmt::format("has rank {}, but the ranks of all hosts are 0 to {}", number, count - 1));
      if (number <= before) return refuse(host, fmt::format("has rank {} after rank {}: they must ascend", number, before));
      if (seats_[number].host >= 0) return refuse(host, fmt::format("has rank {}, which is on another host too", number));
      seats_[number] = {static_cast<int>(h), static_cast<int>(i)};
      before = number;
    }
    if (host.ranks.empty()) continue;
    if (host.ranks.front().number < first_before)
      return refuse(host, fmt::format("comes after one whose first rank is {}: hosts must be in the order of their first ranks",
                                      first_before));
    first_before = host.ranks.front().number;
  }
  return {};
}

const Topology::Seat& Topology::seat(int rank) const {
  check(rank >= 0 && rank < ranks(), "a rank is one of the topology's");
  return seats_[rank];
}

}  // namespace fccl::core
