// The answer of explain about calls between hosts, as JSON.
#pragma once

#include <string>

#include "fccl_info/explain_costs.h"
#include "plan/choose.h"

namespace fccl::core {

struct Explained {
  const plan::Shape& shape;
  const plan::Chooser& chooser;
  const plan::Request& request;
  double bytes;  // of the larger buffer
  double least_seconds;
  const KnownCosts& costs;
};

// Lists every plan with its price; times are seconds.
std::string explain_in_json(const Explained& explained);

}  // namespace fccl::core
