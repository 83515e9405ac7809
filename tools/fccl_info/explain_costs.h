// The costs that fccl-info explain reckons with, and where they come from.
#pragma once

#include <string>

#include "base/result.h"
#include "topology/costs.h"

namespace fccl::core {

// Costs, and their origin in words: "assumed of tcp, not measured".
struct KnownCosts {
  Costs costs{};
  std::string origin;
};

// Returns the costs that `text` says, else those that are assumed of `provider` over NICs of this speed. If both are "",
// FCCL_COSTS decides, then the plug-in of FCCL_TRANSPORT_PLUGIN, as it tells them on this host; with neither, tcp is assumed.
// The error of a setting has the code fcclInvalidUsage, the error of an argument fcclInvalidArgument.
Result<KnownCosts> costs_for(const std::string& text, const std::string& provider, int nic_megabits);

}  // namespace fccl::core
