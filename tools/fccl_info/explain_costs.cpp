// Reads costs from an argument or a setting, asks a plug-in for them, or takes those of a table.
#include "fccl_info/explain_costs.h"

#include <fmt/format.h>

#include "settings/settings.h"
#include "wire/plugin.h"

namespace fccl::core {
namespace {

Result<KnownCosts> parsed(const std::string& text, const char* source, fcclResult_t code) {
  const auto costs = parse_costs(text);
  if (!costs) return fail(code, fmt::format("{}: {}", source, costs.error().message));
  return KnownCosts{*costs, fmt::format("as {} says", source)};
}

Result<KnownCosts> assumed(const std::string& provider, int nic_megabits) {
  const auto costs = default_costs(provider, nic_megabits);
  if (costs) return KnownCosts{{*costs}, fmt::format("assumed of {}, not measured", provider)};
  return fail(fcclInvalidArgument,
              fmt::format("nothing is assumed of a provider '{}'; there are efa, verbs and tcp; the plug-in of "
                          "FCCL_TRANSPORT_PLUGIN is asked without --provider",
                          provider));
}

Result<KnownCosts> told_by_plugin(const Settings& settings) {
  FCCL_TRY_ASSIGN(const auto offered, allowed_nics(settings));
  return KnownCosts{{offered.costs},
                    fmt::format("as FCCL_TRANSPORT_PLUGIN={} tells them of its provider {} over the NICs of this host",
                                settings.transport_plugin, offered.provider)};
}

}  // namespace

Result<KnownCosts> costs_for(const std::string& text, const std::string& provider, int nic_megabits) {
  if (!text.empty()) return parsed(text, "--costs", fcclInvalidArgument);
  if (!provider.empty()) return assumed(provider, nic_megabits);
  FCCL_TRY_ASSIGN(const Settings settings, read_settings());
  if (!settings.costs.empty()) return parsed(settings.costs, "FCCL_COSTS", fcclInvalidUsage);
  if (!settings.transport_plugin.empty()) return told_by_plugin(settings);
  return assumed("tcp", nic_megabits);
}

}  // namespace fccl::core
