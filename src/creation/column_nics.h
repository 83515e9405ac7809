// Chooses which NICs of its host each column of a communicator uses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace fccl::core {

// Encodes what a column's rank tells the ranks of its host: the NICs that it may use, and the NUMA node that it is bound to.
Result<std::string> describe_column(std::vector<Nic> nics, std::optional<int> numa);

// The NICs that serve the columns of a host.
struct ColumnNics {
  std::vector<std::vector<std::string>> names;  // by column, nearest first
  int different = 0;                            // NICs, counted once, over all columns
};

// Divides the NICs, with the same result on all ranks of a host: `columns` holds the texts of describe_column of its columns'
// ranks. Columns that may use the same NICs share them as nics_of_ranks() says. Error: fcclInternalError for a text that
// describe_column does not make.
Result<ColumnNics> nics_of_columns(const std::vector<std::string>& columns);

}  // namespace fccl::core
