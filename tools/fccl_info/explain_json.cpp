// Writes the table of plans that the text has, too.
#include "fccl_info/explain_json.h"

#include <cstdint>
#include <utility>

#include "base/signature.h"
#include "fccl_info/json_text.h"
#include "plan/catalog.h"

namespace fccl::core {
namespace {

Json json_of(const plan::Time& time) {
  return {
      {"total", time.total()}, {"latency", time.latency}, {"messages", time.message}, {"wire", time.wire}, {"host", time.host}};
}

Json plans_of(const Explained& explained) {
  const plan::Way taken = explained.chooser.way_of(explained.request);
  Json plans = Json::array();
  if (taken.algorithm < 0)
    plans.push_back({{"name", taken.name}, {"is_chosen", true}, {"slices", taken.slices}, {"seconds", json_of(taken.time)}});
  for (int each = 0; each < static_cast<int>(plan::kCatalog<plan::Price>.size()); ++each) {
    const auto& algorithm = plan::kCatalog<plan::Price>[static_cast<size_t>(each)];
    if (algorithm.collective != explained.request.collective) continue;
    const plan::Choice best = explained.chooser.best_slices(each, explained.request);
    plans.push_back({{"name", algorithm.name},
                     {"is_chosen", each == taken.algorithm},
                     {"slices", best.slices},
                     {"seconds", json_of(best.time)}});
  }
  return plans;
}

}  // namespace

std::string explain_in_json(const Explained& explained) {
  const Costs& costs = explained.costs.costs;
  Json json{{"collective", name_of(explained.request.collective)},
            {"bytes", static_cast<uint64_t>(explained.bytes)},
            {"hosts", explained.shape.hosts},
            {"ranks", explained.shape.ranks},
            {"rails_per_host", explained.shape.rails},
            {"least_seconds", explained.least_seconds},
            {"plans", plans_of(explained)},
            {"costs", to_text(costs)},
            {"origin_of_costs", explained.costs.origin}};
  json["median_error_percent"] = costs.error_percent ? Json(*costs.error_percent) : Json();
  return json_text(json);
}

}  // namespace fccl::core
