// Topology: the hosts that a communicator spans, with their ranks, NICs and GPUs, as a value.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/place.h"

namespace fccl {

// One network device as a transport sees it: "eth0", "rdmap79s0".
struct Nic {
  std::string name;
  int megabits = 0;  // per second and direction, 0 where it is not known
  Place place;

  bool operator==(const Nic&) const = default;
};

// The order in which a host counts its NICs: by their PCI addresses, those without one last; "eth10" after "eth9".
bool comes_before(const Nic& a, const Nic& b);

struct Gpu {
  int index = 0;  // the device's number on its host
  Place place;

  bool operator==(const Gpu&) const = default;
};

// A rank of the communicator, and what it sits at: a GPU of its host or a NUMA node, or neither if it is bound to none.
struct Rank {
  int number = 0;
  std::optional<int> gpu = {}, numa = {};

  bool operator==(const Rank&) const = default;
};

// `ranks` are in ascending order, and a rank's local rank is its place among them; NICs and GPUs are in the order in which the
// host counts them.
struct Host {
  std::string name;  // for people: two hosts may have one name
  std::vector<Nic> nics;
  std::vector<Gpu> gpus;
  std::vector<Rank> ranks;

  bool operator==(const Host&) const = default;
};

// Where the rank sits; the rank is one of the host's.
Place place_of(const Host& host, const Rank& rank);

// An immutable value that keeps what it promises: ranks count from 0 without a gap, each on one host; hosts are in the order of
// their first ranks; a host's NICs have different names, its GPUs different numbers, and a rank's GPU is one of them. The
// description of a machine has no ranks.
class Topology {
 public:
  static constexpr int kMostRanks = 1 << 20;
  static constexpr size_t kMostDevices = 256;  // NICs, or GPUs, of one host
  static constexpr size_t kMostBridges = 16;   // above one device
  static constexpr int kMostMegabits = 100'000'000;
  static constexpr int kMostNuma = 4095;

  Topology() = default;
  // Error: fcclInvalidUsage, naming the host and what is wrong with it.
  static Result<Topology> of(std::vector<Host> hosts);

  int ranks() const { return static_cast<int>(seats_.size()); }
  const std::vector<Host>& hosts() const { return hosts_; }
  // The number of the rank's host, and the rank's number on that host.
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

}  // namespace fccl
