// costs: the constants of the price model as text, and their defaults before a measurement.
//
//   latency=20us,message=1.25us,wire=97.1Gbit/s,add=1555GB/s,host=360GB/s,error=6.5%
//
// latency and message are times. wire is the rate of one rail in one direction. add is the rate at which a rank reads data to
// add it. host is the rate at which a rank copies within its host. Every constant appears once, in any order, in the unit
// shown; GB are 10^9 bytes. error may be missing: it is the median error of the price where these constants were measured, and
// decides nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "topology/cost_constants.h"

namespace fccl::core {

struct Costs {
  CostConstants constants;
  std::optional<double> error_percent = {};  // empty if the costs were not measured
};

// Parses any bytes. Equal texts give equal values on any machine. Error: fcclInvalidUsage with the constant, its text and the
// expected text.
Result<Costs> parse_costs(std::string_view text);

// Writes six digits, so parsing the text may round the value. Writing that rounded value gives the same text again.
std::string to_text(const Costs& costs);

// Returns what is wrong with the first constant that makes no sense, which 0 (missing), a negative number and NaN do not; "" if
// all do.
std::string fault_of(const CostConstants& constants);

// Returns the assumed costs of "efa", "verbs" and "tcp" over NICs of this speed; nothing for other names. nic_megabits = 0
// means unknown.
std::optional<CostConstants> default_costs(std::string_view provider, int nic_megabits = 0);

}  // namespace fccl::core
