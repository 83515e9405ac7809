// The network addresses that the ranks of all hosts exchange before their lanes connect, and the facts that hold for all ranks.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "segment/segment.h"
#include "sockets/socket.h"
#include "topology/columns.h"
#include "topology/cost_constants.h"
#include "wire/introduction.h"

namespace fccl::core {

// The network of a rank that has a column.
struct NetworkEnd {
  std::string provider;   // "efa", "verbs", "tcp", or the name that another plug-in gives itself
  int rails = 0;          // different NICs that serve the columns of its host
  CostConstants costs{};  // as the plug-in there tells them
};

struct ColumnEnd {
  NetworkEnd network;
  std::array<Introduction, kLanes> lanes{};
};

// Every rank tells this to all ranks. Its endpoint serves all its lanes, so that its limits and addresses, as the lane for
// transfers has them, are told once.
struct RankEnd {
  Introduction transfers;
  Address meeting_place;                 // where others can meet it if the communicator fails
  std::optional<ColumnEnd> column = {};  // if it has a column
};

void append(std::string& bytes, const RankEnd& end);

// What the ranks of all hosts have told. The first three are equal on all ranks.
struct Network {
  std::string provider;
  int rails = 0;          // NICs per host, the fewest of any host
  CostConstants costs{};  // the highest of any host, each constant by itself
  // Those of the members of this rank's column, by host; none for a rank without a column.
  std::array<std::vector<Introduction>, kLanes> introductions;
  std::vector<Introduction> transfers;  // by rank
  std::vector<Address> meeting_places;  // by rank
};

// `by_host`: the bytes that the ranks of each host have appended, in order. `describe` names a rank in messages. Error:
// fcclInvalidUsage if ranks have different providers, fcclInternalError for bytes that append does not make.
Result<Network> read_network(const std::vector<std::string>& by_host, const Columns& columns,
                             const std::function<std::string(int rank)>& describe);

}  // namespace fccl::core
