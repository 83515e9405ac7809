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

struct Shape {
  int hosts;
  int ranks;  // of each host; the largest where they differ
  int rails;  // of each host
  Constants constants;
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

// One slice passes through wire and node, with the message in the node while the next is on the wire; the other slices follow
// at the pace of the slower of the two.
Time predict(const Request& request, Cut cut, const Cost& cost, const Shape& shape, int slices);

// No algorithm moves fewer bytes in one direction through the busiest host's interfaces.
double wire_minimum(const Request& request, int hosts, int ranks);

}  // namespace fccl::plan
