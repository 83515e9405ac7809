// Divides the NICs of a host among its columns, by a topology.
#include "creation/column_nics.h"

#include <algorithm>
#include <set>

#include "topology/rails.h"
#include "topology/text.h"
#include "wire/introduction.h"

namespace fccl::core {
namespace {

// Returns each column's rank as alone on its host, since it sees the host in its own way.
Result<std::vector<Host>> hosts_in(const std::vector<std::string>& columns) {
  std::vector<Host> hosts;
  for (const std::string& text : columns) {
    const auto topology = parse_topology(text);
    const bool is_column = topology && topology->hosts().size() == 1 && topology->ranks() == 1;
    if (!is_column || topology->hosts().front().nics.empty())
      return fail(fcclInternalError, "a rank of this host told NICs that make no sense");
    hosts.push_back(topology->hosts().front());
  }
  return hosts;
}

}  // namespace

Result<std::string> describe_column(std::vector<Nic> nics, std::optional<int> numa) {
  FCCL_TRY_ASSIGN(const auto topology, Topology::of({Host{"here", std::move(nics), {}, {Rank{.number = 0, .numa = numa}}}}));
  return to_text(topology);
}

Result<ColumnNics> nics_of_columns(const std::vector<std::string>& columns) {
  FCCL_TRY_ASSIGN(auto seen, hosts_in(columns));
  ColumnNics chosen{.names = std::vector<std::vector<std::string>>(seen.size())};
  std::set<std::string> different;
  for (size_t first = 0; first < seen.size(); ++first) {
    if (!chosen.names[first].empty()) continue;
    Host host{"here", seen[first].nics, {}, {}};
    for (size_t column = first; column < seen.size(); ++column)
      if (seen[column].nics == host.nics)
        host.ranks.push_back({.number = static_cast<int>(column), .numa = seen[column].ranks.front().numa});
    const auto nics = nics_of_ranks(host);
    for (size_t i = 0; i < host.ranks.size(); ++i)
      for (size_t n = 0; n < nics[i].size() && n < Introduction::kMostRails; ++n) {
        const Nic& nic = host.nics[static_cast<size_t>(nics[i][n])];
        chosen.names[static_cast<size_t>(host.ranks[i].number)].push_back(nic.name);
        different.insert(nic.name);
      }
  }
  chosen.different = static_cast<int>(different.size());
  return chosen;
}

}  // namespace fccl::core
