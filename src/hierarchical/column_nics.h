// Which NICs of its host each column of a communicator uses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "system/settings.h"
#include "wire/transport.h"

namespace fccl {

// Those that FCCL_TRANSPORT and FCCL_NICS allow: in the order of FCCL_NICS, else in that in which hosts count them, so that
// equal hosts agree on it.
Result<OfferedNics> allowed_nics(const Settings& settings);

// What a column's rank tells the ranks of its host: the NICs that it may use, and the NUMA node that it is bound to.
Result<std::string> describe_column(std::vector<Nic> nics, std::optional<int> numa);

// What serves the columns of a host.
struct ColumnNics {
  std::vector<std::vector<std::string>> names;  // by column, nearest first
  int different = 0;                            // of all columns
  int megabits = 0;                             // of the slowest of them; 0 if the speed of one is not known
};

// The same on all ranks of a host: `columns` are what its columns' ranks told. Columns that may use the same NICs share them as
// nics_of_ranks() says. Error: fcclInternalError for what describe_column does not make.
Result<ColumnNics> nics_of_columns(const std::vector<std::string>& columns);

}  // namespace fccl
