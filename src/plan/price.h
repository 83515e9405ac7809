// price: counts the cost of an algorithm for the busiest member, and predicts its time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/rounding.h"
#include "fccl/fccl.h"
#include "plan/steps.h"
#include "topology/cost_constants.h"

namespace fccl::core::plan {

enum class Cut : uint8_t;

// Counts messages, and the chunks in them, through one member's port in one direction.
struct Load {
  int messages = 0;
  int chunks = 0;

  friend bool operator==(const Load&, const Load&) = default;
};

struct Cost {
  int rounds = 0;
  Load path;          // the chain from the first send to the last arrival: the largest load of each round, summed up
  Load port;          // the busiest port's load over all rounds
  int additions = 0;  // the busiest member's additions, each of one part per member
};

// The sink that counts. In an exchange that is the same for all members it counts the root's part, because the root's ports are
// the busiest.
class Price {
 public:
  explicit Price(Group group) : root_(group.root), ports_(2 * group.members), additions_(group.members, 0) {}

  int member() const { return root_; }
  void transfer(const Transfer& transfer);
  void add(const Addition& addition);

  Cost cost() const { return cost_; }

 private:
  struct Port {
    Load all;
    Load in_round;
    int round = -1;
  };

  void load(Port& port, const Transfer& transfer);

  int root_;
  std::vector<Port> ports_;  // each member's port out and port in
  std::vector<int> additions_;
  Load in_round_;
  Cost cost_;
};

// Returns the cost of every algorithm, in the order of the catalog.
std::vector<Cost> price_catalog(int hosts);

// The shape of a communicator. Column i is the i-th rank of every host; there are as many columns as the smallest host has
// ranks. Only ranks in a column use the wire; they also carry the blocks of their host's other ranks.
struct Shape {
  int hosts;
  int ranks;       // on all hosts together
  int most_ranks;  // on the largest host
  int columns;
  int rails;  // per host, for all its columns; the minimum over hosts
  CostConstants constants;

  static Shape of_equal_hosts(int hosts, int ranks, int rails, const CostConstants& constants) {
    return {hosts, hosts * ranks, ranks, ranks, rails, constants};
  }
  // Returns the number of ranks whose blocks the busiest column of a host carries.
  int carried_blocks() const { return divided_up(most_ranks, columns); }
};

// A collective to price. `bytes` is the user's count argument in bytes, for AllGather one rank's contribution.
struct Request {
  fcclColl_t collective;
  double bytes;
};

// A time in seconds, split by cause.
struct Time {
  double latency = 0;
  double message = 0;
  double wire = 0;
  double host = 0;

  double total() const { return latency + message + wire + host; }
};

// Predicts the time of a plan alone. Within a slice, one message is posted while the previous one is on the wire and the one
// before that is copied within the host. Later slices follow at the joint pace of these three stages, close to that of the
// slowest.
Time predict(const Request& request, Cut cut, const Cost& cost, const Shape& shape, int slices);

// Returns the seconds that the entries, by which hosts tell each other of a call, add to every plan for it: those of their
// messages, which a rank sends besides. Their latency passes beside the plan's, and no plan ends before all have heard.
double seconds_of_entries(fcclColl_t collective, const Shape& shape);

// A call whose content travels with the entries: the rounds of messages that follow each other, and the time.
struct WithEntries {
  int rounds;
  Time time;
};

// Returns none if the content is too long for that.
std::optional<WithEntries> predict_with_entries(const Request& request, const Shape& shape);

// Returns a lower bound for any algorithm: the bytes that must cross the busiest host's interfaces in one direction.
double wire_minimum(const Request& request, const Shape& shape);

}  // namespace fccl::core::plan
