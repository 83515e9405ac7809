// Reckons each measured shape.
#include "model/against_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/collective.h"
#include "base/signature.h"
#include "model/init.h"
#include "model/measured.h"
#include "plan/choose.h"
#include "topology/costs.h"

namespace fccl::core::model {
namespace {

constexpr double kLongBytes = 16 << 20;
constexpr fcclColl_t kLongCollectives[] = {fcclCollAllGather, fcclCollReduceScatter, fcclCollAllReduce};

CostConstants calibrated_costs() { return parse_costs(kCalibratedCosts).value().constants; }
CostConstants tcp_costs() { return default_costs("tcp").value(); }

constexpr const char* kSection = R"(## Against measured

Cells have the measured value, the modelled one, and its error.
All hosts were [emulated](hosts.md): their ranks shared two cores, and the model gives each rank its own.

Milliseconds of 16 MiB, out of place, by the costs of [one calibration](hosts.md#price-against-measured) on 2x2, one rail.
The median error is {:.0f} percent.

{}
Microseconds of [short calls](latency.md), on 2x2 by the same costs, which were measured with the packets steered.
Elsewhere they are by those that FCCL assumes of tcp, `{}`.
The median error is {:.0f} percent.

{}
[Init](../explanation/init.md), the least of what was measured, by the costs of tcp:

{}
)";

// `bytes`: of the larger buffer.
double seconds_of(const Hosts& hosts, fcclColl_t collective, double bytes, const CostConstants& costs) {
  const plan::Shape shape = plan::Shape::of_equal_hosts(hosts.hosts, hosts.ranks_per_host, hosts.rails, costs);
  const double block = row_of(collective).has_rank_blocks() ? bytes / shape.ranks : bytes;
  return plan::Chooser(shape).way_of({collective, block}).time.total();
}

// Writes cells of measured and modelled values, and keeps their errors.
class Errors {
 public:
  std::string cell(double measured, double modelled, int digits) {
    if (measured == 0) return " |";
    // A sum with 0 has no negative zero.
    const double error = std::round(100 * (modelled / measured - 1)) + 0.0;
    sizes_.push_back(std::abs(error));
    return fmt::format(" {:.{}f}, {:.{}f} ({:+.0f} %) |", measured, digits, modelled, digits, error);
  }
  double median() const {
    std::vector<double> sorted = sizes_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  std::vector<double> sizes_;
};

std::string long_calls(Errors& errors) {
  std::string text = "| hosts x ranks, rails | AllGather | ReduceScatter | AllReduce |\n|---|---|---|---|\n";
  for (const LongRow& row : kLongRows) {
    text += fmt::format("| {}x{}, {} |", row.hosts.hosts, row.hosts.ranks_per_host, row.hosts.rails);
    for (std::size_t i = 0; i < row.milliseconds.size(); ++i)
      text +=
          errors.cell(row.milliseconds[i], 1e3 * seconds_of(row.hosts, kLongCollectives[i], kLongBytes, calibrated_costs()), 1);
    text += "\n";
  }
  return text;
}

std::string short_calls(Errors& errors) {
  std::string text = "| bytes |";
  for (const int bytes : kShortSizes) text += fmt::format(" {} |", bytes);
  text += "\n|---|---|---|---|\n";
  for (const ShortRow& row : kShortRows) {
    const CostConstants costs = row.is_calibrated ? calibrated_costs() : tcp_costs();
    text += fmt::format("| {}x{}, {}, {} |", row.hosts.hosts, row.hosts.ranks_per_host, row.where, name_of(row.collective));
    for (std::size_t i = 0; i < kShortSizes.size(); ++i)
      text += errors.cell(row.microseconds[i], 1e6 * seconds_of(row.hosts, row.collective, kShortSizes[i], costs), 0);
    text += "\n";
  }
  return text;
}

std::string inits() {
  constexpr std::size_t kSocketAddress = 16;
  Errors errors;
  std::string text = "| init | messages | KB sent | seconds |\n|---|---|---|---|\n";
  for (const InitRow& row : kInitRows) {
    const InitShape shape{row.hosts, row.ranks_per_host, "tcp", 1, kSocketAddress};
    const InitTraffic traffic = init_traffic(shape);
    text += fmt::format("| {} |{}{}{}\n", row.name, errors.cell(row.messages, traffic.messages, 0),
                        errors.cell(row.kilobytes, traffic.bytes / 1e3, 0),
                        errors.cell(row.seconds, init_seconds(shape, tcp_costs(), tcp_costs()), 1));
  }
  return text;
}

}  // namespace

std::string against_measured() {
  Errors of_long, of_short;
  const std::string long_text = long_calls(of_long), short_text = short_calls(of_short);
  return fmt::format(kSection, of_long.median(), long_text, to_text({tcp_costs()}), of_short.median(), short_text, inits());
}

}  // namespace fccl::core::model
