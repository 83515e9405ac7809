// The network addresses that the ranks of all hosts exchange before their lanes connect, and the facts that hold for all ranks.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "segment/segment.h"
#include "sockets/socket.h"
#include "topology/columns.h"
#include "topology/cost_constants.h"
#include "wire/introduction.h"

namespace fccl::core {

// A column's rank tells this to all ranks; the introductions of its lanes follow it.
struct NetworkEnd {
  std::string provider;   // "efa", "verbs", "tcp", or the name that another plug-in gives itself
  int rails = 0;          // different NICs that serve the columns of its host
  CostConstants costs{};  // as the plug-in there tells them
};

void append(std::string& bytes, const NetworkEnd& end);
void append(std::string& bytes, const Introduction& introduction);

// Equal on all ranks, except for the introductions: a rank gets those of the members of its column, by host; a rank without a
// column gets an empty list.
struct Network {
  std::string provider;
  int rails = 0;          // NICs per host, the fewest of any host
  CostConstants costs{};  // the highest of any host, each constant by itself
  std::array<std::vector<Introduction>, kLanes> introductions;
};

// `by_host`: the bytes that the ranks of each host have appended, in order. `describe` names a rank in messages. Error:
// fcclInvalidUsage if ranks have different providers, fcclInternalError for bytes that append does not make.
Result<Network> read_network(const std::vector<std::string>& by_host, const Columns& columns,
                             const std::function<std::string(int rank)>& describe);

// Every rank tells this to all ranks: the introduction of its lane for transfers, and where others can meet it if the
// communicator fails.
struct RankEnd {
  Introduction transfers;
  Address meeting_place;
};

void append(std::string& bytes, const RankEnd& end);

// Returns the ends by rank: `by_host` holds the bytes that the ranks of each host have appended. Error: fcclInternalError for
// bytes that append does not make.
Result<std::vector<RankEnd>> read_rank_ends(const std::vector<std::string>& by_host, const Columns& columns);

}  // namespace fccl::core
