// The pairs of element type and operator that a command line asks for.
#pragma once

#include <string>
#include <vector>

#include "arguments.h"
#include "collective.h"
#include "elements.h"
#include "launch/launcher.h"

namespace fccl::perf {

struct Case {
  const ElementType* type;
  const Operator* op;  // ignored by collectives that do not reduce
};

struct Cases {
  std::vector<Case> chosen;
  std::vector<std::string> left_out;  // types and operators asked for that the measured peer does not have: "avg of float"
};

// `peer` is the MPI to measure, or null.
Cases cases_of(const Arguments& arguments, const Collective& collective, const FcclLauncher* peer);

}  // namespace fccl::perf
