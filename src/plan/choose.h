// choose: which algorithm and how many slices a collective takes between hosts, by price; and the table that explains it.
#pragma once

#include <string>
#include <vector>

#include "plan/price.h"

namespace fccl::plan {

// Whether the catalog has an algorithm for a collective; without one it does not go between hosts.
bool has_algorithm(fcclColl_t collective);

struct Choice {
  int algorithm;  // its place in the catalog
  int slices;
  Time time;
};

// Chooses for communicators of one shape. A value that holds the prices of all algorithms, made once; choosing allocates
// nothing. Any thread may ask. Ranks that have equal shapes choose alike: the answer depends on nothing else.
class Chooser {
 public:
  explicit Chooser(const Shape& shape) : shape_(shape), costs_(price_catalog(shape.hosts)) {}

  // The cheapest algorithm, the earlier in the catalog where two cost the same, with the number of slices that suits it.
  Choice choose(const Request& request) const;
  // The number of slices that suits an algorithm, chosen or not; by its place in the catalog.
  Choice best_slices(int algorithm, const Request& request) const;

  // A table of the algorithms that could be taken, each with the number of slices that suits it, the chosen one marked.
  std::string explain(const Request& request) const;

 private:
  Shape shape_;
  std::vector<Cost> costs_;
};

}  // namespace fccl::plan
