// price: what an algorithm costs, counted by the busiest member, and the time that makes of it.
#pragma once

#include <vector>

#include "plan/catalog.h"

namespace fccl::plan {

// Messages, and the chunks in them, through one member's port in one direction.
struct Load {
  int messages = 0;
  int chunks = 0;

  friend bool operator==(const Load&, const Load&) = default;
};

struct Cost {
  int rounds = 0;
  Load path;          // one behind the other, from the first send to the last arrival: the largest load of each round, added up
  Load port;          // of the busiest port, over all rounds
  int additions = 0;  // of the busiest member, each of as many parts as there are members
};

// The sink that counts. In an exchange that is the same for everyone it looks at the root, whose ports are the busiest.
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
  std::vector<Port> ports_;  // each member's way out and way in
  std::vector<int> additions_;
  Load in_round_;
  Cost cost_;
};

// The cost of every algorithm of the catalog, in its order.
std::vector<Cost> price_catalog(int hosts);

// Measured, in seconds; equal on all ranks, since they decide.
struct Constants {
  double latency;     // alpha: from the end of a send to the moment at which the receiver may go on
  double message;     // o: of a rank's time for each message
  double wire_byte;   // beta: for each byte on one rail
  double added_byte;  // gamma: for each byte that a rank reads to add it
  double node_byte;   // nu: for each byte that a rank copies within its host
};

// The hosts between which collectives go. Column i, of as many as the host with the fewest ranks has, is the i-th rank of every
// host; only columns use the wire. The blocks of a host's other ranks are dealt out to its columns.
struct Shape {
  int hosts;
  int ranks;       // of all hosts
  int most_ranks;  // of one host
  int columns;
  int rails;  // of each host, for all its columns; the fewest where they differ
  Constants constants;

  static Shape of_equal_hosts(int hosts, int ranks, int rails, const Constants& constants) {
    return {hosts, hosts * ranks, ranks, ranks, rails, constants};
  }
  // The blocks of ranks that the busiest column carries for a host.
  int carried_blocks() const { return (most_ranks + columns - 1) / columns; }
};

// What is to be done; `bytes` are those of the count that the user gives, so of AllGather one rank's contribution.
struct Request {
  fcclColl_t collective;
  double bytes;
};

// Seconds, by where they go.
struct Time {
  double latency = 0;
  double message = 0;
  double wire = 0;
  double node = 0;

  double total() const { return latency + message + wire + node; }
};

// One slice passes through wire and node, a message being posted while the one before it is on the wire and that before it in
// the node; the other slices follow at the pace of the three together, which is near that of the slowest.
Time predict(const Request& request, Cut cut, const Cost& cost, const Shape& shape, int slices);

// No algorithm moves fewer bytes in one direction through the busiest host's interfaces.
double wire_minimum(const Request& request, const Shape& shape);

}  // namespace fccl::plan
