// Tests the fit of the costs on times that are known to follow from costs.
#include "fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fccl::perf {
namespace {

constexpr Costs kSlowWire{3e-5, 4e-6, 1 / 1.2e8, 1 / 4e9, 1 / 3e9};
constexpr Costs kSlowHost{3e-5, 4e-6, 1 / 1.2e10, 1 / 2e9, 1 / 1e9};

constexpr Hosts equal_hosts(int hosts, int ranks) {
  return {.hosts = hosts, .ranks = hosts * ranks, .most_ranks = ranks, .columns = ranks};
}

// What these costs make of calls like those of --calibrate; times are off by up to `noise` of themselves.
std::vector<Point> points_of(const Hosts& hosts, const Costs& costs, double noise = 0) {
  std::vector<Load> loads;
  for (const auto load_of : {all_gather_load, reduce_scatter_load}) {
    for (const double block : {4e3, 16e3, 64e3}) loads.push_back(load_of(hosts, block, 1));
    for (const double block : {4e3, 250e3, 1e6, 4e6}) loads.push_back(load_of(hosts, block, kMostSlices));
  }
  for (const double bytes : {1e6, 4e6}) loads.push_back(broadcast_load(hosts, bytes, kMostSlices));
  std::vector<Point> points;
  for (const Load& load : loads) {
    const double off = noise * std::sin(7.0 * static_cast<double>(points.size()));
    points.push_back({load, predict(load, costs) * (1 + off)});
  }
  return points;
}

void expect_near(double found, double true_value, double share) { EXPECT_NEAR(found / true_value, 1, share); }

TEST(Fit, FindsTheCostsOfASlowWire) {
  for (const Hosts& hosts : {equal_hosts(2, 1), equal_hosts(2, 2), equal_hosts(3, 2), equal_hosts(8, 4)}) {
    SCOPED_TRACE(hosts.ranks);
    const Costs found = fit(points_of(hosts, kSlowWire));
    expect_near(found.latency, kSlowWire.latency, 0.3);
    expect_near(found.message, kSlowWire.message, 0.1);
    expect_near(found.wire_byte, kSlowWire.wire_byte, 0.05);
    EXPECT_LT(median_error_percent(points_of(hosts, kSlowWire), found), 2);
  }
}

TEST(Fit, FindsTheCostsOfASlowHost) {
  for (const Hosts& hosts : {equal_hosts(2, 1), equal_hosts(2, 2), equal_hosts(3, 2), equal_hosts(8, 4)}) {
    SCOPED_TRACE(hosts.ranks);
    const Costs found = fit(points_of(hosts, kSlowHost));
    expect_near(found.host_byte, kSlowHost.host_byte, 0.1);
    expect_near(found.added_byte, kSlowHost.added_byte, 0.2);
    EXPECT_LT(median_error_percent(points_of(hosts, kSlowHost), found), 2);
  }
}

TEST(Fit, FindsCostsOfAnyMixture) {
  const Hosts hosts = equal_hosts(2, 2);
  for (const double latency : {3e-6, 3e-4})
    for (const double message : {5e-7, 5e-5})
      for (const double wire : {1e8, 1e9, 1e10})
        for (const double host : {1e9, 3e9, 2e10}) {
          const std::vector<Point> points = points_of(hosts, {latency, message, 1 / wire, 1 / 8e9, 1 / host});
          EXPECT_LT(median_error_percent(points, fit(points)), 3) << latency << ' ' << message << ' ' << wire << ' ' << host;
        }
}

TEST(Fit, FindsWhatOneRailOfSeveralCarries) {
  Hosts hosts = equal_hosts(2, 2);
  hosts.rails = 4;
  expect_near(fit(points_of(hosts, kSlowWire)).wire_byte, kSlowWire.wire_byte, 0.05);
}

TEST(Fit, BearsNoise) {
  const Costs found = fit(points_of(equal_hosts(2, 2), kSlowWire, 0.2));
  expect_near(found.wire_byte, kSlowWire.wire_byte, 0.2);
  EXPECT_LT(median_error_percent(points_of(equal_hosts(2, 2), kSlowWire), found), 15);
}

TEST(Fit, OfTimesThatNoCostsExplainIsPositiveAndFinite) {
  for (const double seconds : {1e-12, 1e-3, 1e6}) {
    std::vector<Point> points = points_of(equal_hosts(2, 2), kSlowWire);
    for (Point& point : points) point.seconds = seconds;
    const Costs found = fit(points);
    for (const double cost : {found.latency, found.message, found.wire_byte, found.added_byte, found.host_byte}) {
      EXPECT_GT(cost, 0);
      EXPECT_LE(cost, 1);
    }
  }
}

TEST(Fit, AnErrorIsBelowZeroWhereThePredictionIsTooShort) {
  const Load load = all_gather_load(equal_hosts(2, 1), 1e6, 1);
  EXPECT_NEAR(error_percent({load, 2 * predict(load, kSlowWire)}, kSlowWire), -50, 1e-9);
  EXPECT_NEAR(error_percent({load, predict(load, kSlowWire) / 2}, kSlowWire), 100, 1e-9);
}

TEST(Fit, TheMedianIsOfTheSizesOfTheErrors) {
  const Load load = all_gather_load(equal_hosts(2, 1), 1e6, 1);
  const double seconds = predict(load, kSlowWire);
  EXPECT_NEAR(median_error_percent({{load, 2 * seconds}, {load, 4 * seconds}, {load, seconds}}, kSlowWire), 50, 1e-9);
}

TEST(Fit, CostsAreWrittenAsFcclCostsIs) {
  EXPECT_EQ(text_of({2e-5, 1.25e-6, 1 / 1.25e10, 1 / 1e10, 1 / 5e9}, 6.4999),
            "latency=20us,message=1.25us,wire=100Gbit/s,add=10GB/s,host=5GB/s,error=6.5%");
}

}  // namespace
}  // namespace fccl::perf
