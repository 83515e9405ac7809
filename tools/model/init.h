// init: what making a communicator of equal hosts sends, counted with the library's own messages, and how long that takes.
#pragma once

#include <cstddef>
#include <string>

#include "topology/cost_constants.h"

namespace fccl::core::model {

// Decides the sizes of messages.
struct InitShape {
  int hosts;
  int ranks_per_host;
  std::string provider;
  int rails_of_rank;
  std::size_t name_bytes;  // bytes of a rail's name in libfabric

  int ranks() const { return hosts * ranks_per_host; }
};

// All processes together, as fcclCommGetInitCost counts: without the messages of handshakes, but with their bytes.
struct InitTraffic {
  double messages = 0;
  double bytes = 0;
};

InitTraffic init_traffic(const InitShape& shape);

// Returns the seconds for processes that come at the same time, each with a processor of its own. The root, the leader of each
// host and the first leader do one thing after another: `bootstrap` says what that costs by TCP, and `wire` what the last
// barrier costs.
double init_seconds(const InitShape& shape, const CostConstants& bootstrap, const CostConstants& wire);

}  // namespace fccl::core::model
