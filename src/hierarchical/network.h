// What the ranks of all hosts tell each other of the network before their lanes connect, and what holds for all of them.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hierarchical/columns.h"
#include "node/segment.h"
#include "sockets/socket.h"
#include "wire/introduction.h"

namespace fccl {

// What a column's rank tells all ranks; behind it stand the introductions of its lanes.
struct NetworkEnd {
  std::string provider;  // "efa", "verbs", "tcp"
  int rails = 0;         // different NICs that serve the columns of its host
  int megabits = 0;      // of the slowest of them; 0 if the speed of one is not known
};

void append(std::string& bytes, const NetworkEnd& end);
void append(std::string& bytes, const Introduction& introduction);

// The same on all ranks, but for the introductions: those of the members of the rank's column, by host; none if it has no
// column.
struct Network {
  std::string provider;
  int rails = 0;     // of each host, the fewest where they differ
  int megabits = 0;  // of the slowest NIC; 0 if the speed of one is not known
  std::array<std::vector<Introduction>, kLanes> introductions;
};

// `by_host`: what the ranks of each host have appended, one behind the other. `describe` names a rank in messages. Error:
// fcclInvalidUsage where ranks take different providers, fcclInternalError for bytes that append does not make.
Result<Network> read_network(const std::vector<std::string>& by_host, const Columns& columns,
                             const std::function<std::string(int rank)>& describe);

// What every rank tells all ranks: of its lane for transfers, and where others can meet it if the communicator fails.
struct RankEnd {
  Introduction transfers;
  Address meeting_place;
};

void append(std::string& bytes, const RankEnd& end);

// By rank: `by_host` is what the ranks of each host have appended. Error: fcclInternalError for bytes that append does not
// make.
Result<std::vector<RankEnd>> read_rank_ends(const std::vector<std::string>& by_host, const Columns& columns);

}  // namespace fccl
