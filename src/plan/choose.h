// choose: picks by price the algorithm and the number of slices of a collective between hosts, and explains the choice.
#pragma once

#include <string>
#include <vector>

#include "plan/price.h"

namespace fccl::core::plan {

// True if the catalog has an algorithm for the collective; without one it cannot go between hosts.
bool has_algorithm(fcclColl_t collective);

struct Choice {
  int algorithm;  // its index in the catalog
  int slices;
  Time time;  // of the call, with its entries
};

// The way that a call takes: with the entries by which hosts tell each other of it, or by a plan.
struct Way {
  int algorithm;  // its index in the catalog; -1: with the entries
  const char* name;
  int rounds;  // those that follow each other
  int slices;
  Time time;
};

// Chooses for communicators of one shape among plans, which move what is too long to travel with the entries. A value that
// holds the prices of all algorithms; choosing allocates nothing. Any thread may ask. Ranks with equal shapes choose alike,
// because the choice depends on nothing else.
class Chooser {
 public:
  explicit Chooser(const Shape& shape) : shape_(shape), costs_(price_catalog(shape.hosts)) {}

  // Returns the cheapest algorithm with its best number of slices. If two cost the same, the earlier in the catalog wins.
  Choice choose(const Request& request) const;
  // Returns the best number of slices for an algorithm, given by its index in the catalog.
  Choice best_slices(int algorithm, const Request& request) const;

  // Returns the way of a call: the entries if they can carry its content, else the chosen plan.
  Way way_of(const Request& request) const;

  // Returns a table of the possible algorithms, each with its best number of slices, and of the entries if they carry the
  // content; the way of the call is marked.
  std::string explain(const Request& request) const;

 private:
  Way by_plan(const Choice& choice) const;

  Shape shape_;
  std::vector<Cost> costs_;
};

}  // namespace fccl::core::plan
