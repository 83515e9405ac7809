// costs: the constants of the price model as text, and those that hold until somebody has measured.
//
//   latency=20us,message=1.25us,wire=97.1Gbit/s,add=1555GB/s,node=360GB/s,error=6.5%
//
// latency and message are times; wire is what one rail carries in one direction; add is what a rank reads when it adds, and
// node what it copies within its host. Every constant stands once, in any order, in the unit shown; GB are 10^9 bytes. error,
// which may be missing, is the median of how far the price was off where these constants were measured; it decides nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/price.h"

namespace fccl::plan {

struct Costs {
  Constants constants;
  std::optional<double> error_percent = {};  // nothing where nobody has measured
};

// Equal texts give equal values, on any machine. Any bytes will do as input. Error: fcclInvalidUsage, naming the constant, what
// stands there and what was expected.
Result<Costs> parse_costs(std::string_view text);

// With six digits: parsing gives the value but for rounding, and the text of that value is this text again.
std::string to_text(const Costs& costs);

// What is assumed of "efa", "verbs" and "tcp" before anything is measured, over NICs of this speed; nothing for other names.
// nic_megabits = 0 where the speed is not known.
std::optional<Constants> default_costs(std::string_view provider, int nic_megabits = 0);

}  // namespace fccl::plan
