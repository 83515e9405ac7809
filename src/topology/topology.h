// Topology: the hosts that a communicator spans, with their ranks, NICs and GPUs, as a value.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/nic.h"
#include "topology/place.h"

namespace fccl::core {

// The order in which a host numbers its NICs: by PCI address, those without one last by name, with "eth10" after "eth9".
bool comes_before(const Nic& a, const Nic& b);

struct Gpu {
  int index = 0;  // the device's number on its host
  Place place;

  bool operator==(const Gpu&) const = default;
};

// A rank of the communicator and the GPU or NUMA node that it is bound to, if any.
struct Rank {
  int number = 0;
  std::optional<int> gpu = {}, numa = {};

  bool operator==(const Rank&) const = default;
};

// A host. `ranks` are in ascending order; a rank's local rank is its index among them. NICs and GPUs are in the order of the
// host's numbering.
struct Host {
  std::string name;  // for messages; two hosts may share a name
  std::vector<Nic> nics;
  std::vector<Gpu> gpus;
  std::vector<Rank> ranks;

  bool operator==(const Host&) const = default;
};

// Returns the place of one of the host's ranks.
Place place_of(const Host& host, const Rank& rank);

// An immutable value with these invariants: ranks count from 0 without a gap, each on one host; hosts are in the order of their
// first ranks; a host's NICs have different names and its GPUs different numbers; a rank's GPU is one of its host's. A
// description of a machine may have no ranks.
class Topology {
 public:
  static constexpr int kMostRanks = 1 << 20;
  static constexpr size_t kMostDevices = 256;  // NICs of one host; also GPUs of one host
  static constexpr size_t kMostBridges = 16;   // bridges above one device
  static constexpr int kMostMegabits = 100'000'000;
  static constexpr int kMostNuma = 4095;

  Topology() = default;
  // Checks the invariants. Error: fcclInvalidUsage with the host and what is wrong with it.
  static Result<Topology> of(std::vector<Host> hosts);

  int ranks() const { return static_cast<int>(seats_.size()); }
  const std::vector<Host>& hosts() const { return hosts_; }
  // Return the number of the rank's host, and the rank's number on that host.
  int host_of(int rank) const { return seat(rank).host; }
  int local_rank_of(int rank) const { return seat(rank).local_rank; }

  bool operator==(const Topology& other) const { return hosts_ == other.hosts_; }

 private:
  struct Seat {
    int host = -1, local_rank = -1;
  };
  const Seat& seat(int rank) const;
  Result<void> seat_ranks();

  std::vector<Host> hosts_;
  std::vector<Seat> seats_;  // by rank
};

}  // namespace fccl::core
