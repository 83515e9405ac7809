// Reads and writes costs, and holds the published figures behind the defaults.
#include "topology/costs.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstddef>

#include "topology/text.h"

namespace fccl::core {
namespace {

struct Unit {
  const char* name;
  double scale;  // for a time, units per second; for a rate, bytes per second of one unit
  bool is_rate;
};

constexpr Unit kMicroseconds{"us", 1e6, false};
constexpr Unit kGigabits{"Gbit/s", 1.25e8, true};
constexpr Unit kGigabytes{"GB/s", 1e9, true};

struct Constant {
  std::string_view name;
  std::string_view field_name;
  Unit unit;
  double CostConstants::* field;  // seconds, or seconds per byte
};

constexpr std::array kConstants{
    Constant{"latency", "latency", kMicroseconds, &CostConstants::latency},
    Constant{"message", "message", kMicroseconds, &CostConstants::message},
    Constant{"wire", "wire_byte", kGigabits, &CostConstants::wire_byte},
    Constant{"add", "added_byte", kGigabytes, &CostConstants::added_byte},
    Constant{"host", "host_byte", kGigabytes, &CostConstants::host_byte},
};

constexpr const char* kForm = "latency=20us,message=1us,wire=100Gbit/s,add=10GB/s,host=10GB/s,error=5%";
constexpr std::string_view kErrorName = "error";
constexpr std::string_view kEarlierNameOfHost = "node";
constexpr Unit kPercent{"%", 1, false};

// No real machine is slower or faster. A time may be 0.
constexpr double kLeastRate = 1e-6;
constexpr double kMost = 1e9;

// Returns seconds, or seconds per byte.
double seconds(const Unit& unit, double value) { return unit.is_rate ? 1 / (value * unit.scale) : value / unit.scale; }

double in_unit(const Unit& unit, double seconds) { return unit.is_rate ? 1 / (seconds * unit.scale) : seconds * unit.scale; }

double least(const Unit& unit) { return unit.is_rate ? kLeastRate : 0; }

tl::unexpected<Error> refuse(const std::string& reason) {
  return fail(fcclInvalidUsage, fmt::format("{}; costs are written as in \"{}\"", reason, kForm));
}

std::optional<double> value_in(std::string_view text, const Unit& unit) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool fits = fault == std::errc() && text.substr(end - text.data()) == unit.name;
  // The comparisons are written so that a NaN fails them.
  return fits && value >= least(unit) && value <= kMost ? std::optional(value) : std::nullopt;
}

// Returns the index of the constant in kConstants; one past the end means the error. Returns nothing for another name.
std::optional<size_t> place_of(std::string_view name) {
  if (name == kEarlierNameOfHost) name = "host";
  for (size_t i = 0; i < kConstants.size(); ++i)
    if (kConstants[i].name == name) return i;
  return name == kErrorName ? std::optional(kConstants.size()) : std::nullopt;
}

double wire_byte(double gigabits) { return seconds(kGigabits, gigabits); }

double gigabits(int megabits, double where_unknown) { return megabits > 0 ? megabits / 1e3 : where_unknown; }

}  // namespace

Result<Costs> parse_costs(std::string_view text) {
  Costs costs{};
  std::array<bool, kConstants.size() + 1> seen{};
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    const bool last = part.size() == text.size();
    text.remove_prefix(part.size() + (last ? 0 : 1));
    if (!last && text.empty()) return refuse("the costs end with a comma");
    const size_t equals = part.find('=');
    const auto place = place_of(part.substr(0, equals));
    if (!place || equals == std::string_view::npos)
      return refuse(fmt::format("{} in the costs is not latency, message, wire, add, host or error with \"=\" and a value",
                                quoted(part)));
    const bool is_error = *place == kConstants.size();
    const Unit& unit = is_error ? kPercent : kConstants[*place].unit;
    const auto value = value_in(part.substr(equals + 1), unit);
    if (!value)
      return refuse(
          fmt::format("the cost {} is not a number from {} to {} followed by {}", quoted(part), least(unit), kMost, unit.name));
    if (seen[*place]) return refuse(fmt::format("{} stands twice in the costs", part.substr(0, equals)));
    seen[*place] = true;
    if (is_error)
      costs.error_percent = value;
    else
      costs.constants.*kConstants[*place].field = seconds(unit, *value);
  }
  for (size_t i = 0; i < kConstants.size(); ++i)
    if (!seen[i]) return refuse(fmt::format("{} is missing in the costs", kConstants[i].name));
  return costs;
}

std::string to_text(const Costs& costs) {
  std::string text;
  for (const Constant& constant : kConstants)
    text += fmt::format("{}{}={:.6g}{}", text.empty() ? "" : ",", constant.name,
                        in_unit(constant.unit, costs.constants.*constant.field), constant.unit.name);
  if (costs.error_percent) text += fmt::format(",{}={:.6g}{}", kErrorName, *costs.error_percent, kPercent.name);
  return text;
}

std::string fault_of(const CostConstants& constants) {
  for (const auto& [name, field_name, unit, field] : kConstants) {
    const double value = constants.*field, shown = in_unit(unit, value);
    // The comparisons are written so that a NaN fails them.
    if (value > 0 && shown >= least(unit) && shown <= kMost) continue;
    return value == 0 ? fmt::format("{} is missing (0 s)", field_name)
                      : fmt::format("{} is {:g} s, and {} {:g} {} are not possible", field_name, value, name, shown, unit.name);
  }
  return "";
}

std::optional<CostConstants> default_costs(std::string_view provider, int nic_megabits) {
  // The figures for p5.48xlarge, as far as they are published:
  //   latency   20 us, a write of 8 bytes with immediate data on p5: aws-ofi-nccl 2daf7d3, src/tuner/nccl_ofi_model.cpp
  //   message   1.25 us, as 0.8 million writes per second: fi_rma_bw on p5, github.com/abcdabcd987/libfabric-efa-demo
  //   wire      97.1 percent: 3108 of 3200 Gbit/s over all 32 NICs of a p5, same source
  //   add       1555 GB/s, the memory of an A100 (data sheet), the slowest GPU that comes with EFA in p4 and p5
  //   host      360 GB/s, an AllGather of 16 GB by 8 H100 over NVSwitch: github.com/NVIDIA/nccl-tests, issue 326
  // These figures hold for ranks whose buffers lie in GPUs joined by NVSwitch.
  constexpr double kEfaLatency = 20e-6, kEfaMessage = 1.25e-6, kEfaShare = 0.971;
  constexpr double kGpuAdded = 1 / 1555e9, kGpuHost = 1 / 360e9;
  if (provider == "efa")
    return CostConstants{kEfaLatency, kEfaMessage, wire_byte(kEfaShare * gigabits(nic_megabits, 100)), kGpuAdded, kGpuHost};
  // Orders of magnitude: RDMA through one switch takes 2 us, and a NIC takes millions of messages a second; GPUs as above.
  if (provider == "verbs")
    return CostConstants{2e-6, 0.3e-6, wire_byte(0.97 * gigabits(nic_megabits, 100)), kGpuAdded, kGpuHost};
  // Orders of magnitude for ranks whose buffers are in the host's memory: the kernel's TCP, and one core that copies and adds.
  // A message was measured at 23 us with a core per rank and 57 us with two ranks per core. 1448 of the 1538 bytes that a frame
  // takes on the wire are payload.
  if (provider == "tcp")
    return CostConstants{30e-6, 30e-6, wire_byte(1448. / 1538 * gigabits(nic_megabits, 10)), 1 / 8e9, 1 / 5e9};
  return std::nullopt;
}

}  // namespace fccl::core
