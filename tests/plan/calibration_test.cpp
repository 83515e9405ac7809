// Compares the price, costs and plans that --calibrate of the perf binaries uses with the library's own.
#include <gtest/gtest.h>

#include "base/collective.h"
#include "fit.h"
#include "plan/catalog.h"
#include "plan/choose.h"
#include "plan/entry_rounds.h"
#include "topology/costs.h"

namespace fccl::core::plan {
namespace {

// By the catalog, and by what the perf binaries know of it.
struct Kind {
  fcclColl_t collective;
  std::string_view algorithm;
  perf::Load (*load)(const perf::Hosts&, double, int);
};

constexpr Kind kKinds[] = {{fcclCollAllGather, "pairwise", perf::all_gather_load},
                           {fcclCollReduceScatter, "pairwise", perf::reduce_scatter_load},
                           {fcclCollBroadcast, "chain", perf::broadcast_load}};

size_t place_of(const Kind& kind) {
  size_t place = 0;
  while (kCatalog<Price>[place].collective != kind.collective || kCatalog<Price>[place].name != kind.algorithm) ++place;
  return place;
}

constexpr CostConstants kSlowWire{3e-5, 4e-6, 1 / 1.2e8, 1 / 4e9, 1 / 3e9};
constexpr CostConstants kSlowHost{3e-5, 4e-6, 1 / 1.2e10, 1 / 2e9, 1 / 1e9};

perf::Costs known_as(const CostConstants& c) { return {c.latency, c.message, c.wire_byte, c.added_byte, c.host_byte}; }

// Equal hosts, and hosts of 3 and 1 ranks and the like, of one rail and of several.
std::vector<perf::Hosts> shapes() {
  return {{2, 2, 1, 1, 1}, {2, 4, 2, 2, 2}, {3, 6, 2, 2, 1}, {2, 4, 3, 1, 3}, {8, 40, 7, 3, 1}, {8, 64, 8, 8, 32}};
}

Shape shape_of(const perf::Hosts& hosts, const CostConstants& constants) {
  return {hosts.hosts, hosts.ranks, hosts.most_ranks, hosts.columns, hosts.rails, constants};
}

TEST(Calibration, predicts_what_the_library_predicts) {
  for (const perf::Hosts& hosts : shapes())
    for (const CostConstants& constants : {kSlowWire, kSlowHost})
      for (const Kind& kind : kKinds)
        for (const int slices : {1, 4, 64})
          for (const double bytes : {4e3, 1e6, 1e8}) {
            const Shape shape = shape_of(hosts, constants);
            const size_t place = place_of(kind);
            const Time time =
                predict({kind.collective, bytes}, kCatalog<Price>[place].cut, price_catalog(hosts.hosts)[place], shape, slices);
            const perf::Load load = kind.load(hosts, bytes, slices);
            const double known = perf::predict(load, known_as(constants));
            EXPECT_NEAR(known / (time.total() + load.entries * constants.message), 1, 1e-9)
                << kind.algorithm << " of " << bytes << " in " << slices;
          }
}

TEST(Calibration, counts_the_entries_of_the_plans_that_it_forces) {
  for (const perf::Hosts& hosts : shapes())
    for (const Kind& kind : kKinds)
      for (const char* forced : {perf::kOneSlice, perf::kManySlices}) {
        const auto entries = EntryRounds::of_call(hosts.hosts, row_of(kind.collective), std::nullopt,
                                                  payload_bytes_of(hosts.hosts), parse_costs(forced)->constants);
        EXPECT_EQ(kind.load(hosts, 1e6, 1).entries, entries.count()) << kind.algorithm << " of " << hosts.hosts;
      }
}

TEST(Calibration, text_is_read_by_the_library) {
  for (const CostConstants& constants : {kSlowWire, kSlowHost, CostConstants{1e-8, 1e-9, 1e-14, 1e-14, 1e-14}}) {
    const auto read = parse_costs(perf::text_of(known_as(constants), 6.54));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(to_text(*read), to_text({constants, 6.5}));
  }
}

TEST(Calibration, forces_the_number_of_slices) {
  for (const perf::Hosts& hosts : shapes())
    for (const Kind& kind : kKinds)
      for (const double bytes : {4096., 1e6, 1e8}) {
        const Chooser one(shape_of(hosts, parse_costs(perf::kOneSlice)->constants));
        EXPECT_EQ(one.choose({kind.collective, bytes}).slices, 1);
        const Chooser many(shape_of(hosts, parse_costs(perf::kManySlices)->constants));
        EXPECT_EQ(many.choose({kind.collective, bytes}).slices, perf::kMostSlices);
      }
}

}  // namespace
}  // namespace fccl::core::plan
