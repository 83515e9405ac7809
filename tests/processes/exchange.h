// Exchange: a random group of sends and receives, and which of them belong together.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "processes/parcel.h"

namespace fccl::core::testing {

// A random group of sends and receives, alike on all ranks but for the order in which each issues its own.
struct Exchange {
  std::vector<Route> routes{};
  // Behind the other routes those of the crowd: alike in receiver, tag and count, and received from any source.
  size_t first_of_crowd = 0;
  bool on_stream = false;

  bool is_of_crowd(size_t route) const { return route >= first_of_crowd; }
};

// Behind those of other routes. A rank may be a step ahead.
inline constexpr int kTagOfCrowd = 1000;

inline void add_crowd(std::mt19937_64& generator, int ranks, int step, Exchange& exchange) {
  const auto below = [&](uint64_t bound) { return static_cast<size_t>(generator() % bound); };
  exchange.first_of_crowd = exchange.routes.size();
  const auto to = static_cast<int>(below(static_cast<uint64_t>(ranks)));
  const size_t count = below(2) == 0 ? below(64) : below(20'000);
  for (size_t i = below(12); i > 0; --i)
    exchange.routes.push_back({.from = static_cast<int>(below(static_cast<uint64_t>(ranks))),
                               .to = to,
                               .count = count,
                               .tag = kTagOfCrowd + step,
                               .iteration = step * 100 + static_cast<int>(exchange.routes.size()),
                               .misalignment = 0});
}

// Messages without a tag keep their order, and so does the crowd; the others have a tag each. Sizes differ by up to six MB.
inline Exchange random_exchange(std::mt19937_64& generator, int ranks, int step) {
  const auto below = [&](uint64_t bound) { return static_cast<size_t>(generator() % bound); };
  constexpr std::array<size_t, 10> kSizes{0, 1, 32, 33, 4096, 4097, 131'073, 1'048'577, 1'500'000, 6'000'000};
  Exchange exchange{.on_stream = below(2) == 0};
  const size_t most = 1 + below(24);
  for (size_t i = 0; i < most; ++i) {
    Route route{.from = static_cast<int>(below(static_cast<uint64_t>(ranks))),
                .to = static_cast<int>(below(static_cast<uint64_t>(ranks))),
                .count = below(3) == 0 ? below(50'000) : kSizes[below(below(4) == 0 ? kSizes.size() : kSizes.size() - 1)],
                .tag = below(2) == 0 ? -1 : static_cast<int>(i),
                .iteration = step * 100 + static_cast<int>(i),
                .misalignment = below(8)};
    exchange.routes.push_back(route);
  }
  add_crowd(generator, ranks, step, exchange);
  return exchange;
}

// The ends of a rank, in an order of its own.
inline std::vector<size_t> order_of(const Exchange& exchange, int rank, int step) {
  std::mt19937_64 generator(static_cast<uint64_t>(step) * 64 + static_cast<uint64_t>(rank));
  std::vector<size_t> tagged, order;
  for (size_t i = 0; i < exchange.routes.size(); ++i)
    (exchange.routes[i].tag < 0 || exchange.is_of_crowd(i) ? order : tagged).push_back(i);
  for (const size_t i : tagged) order.insert(order.begin() + static_cast<ptrdiff_t>(generator() % (order.size() + 1)), i);
  return order;
}

// The k-th that a receiver of the crowd took from a source is the k-th that this one sent it. Puts each parcel into the place
// of its route; "" if every route has one.
inline std::string sort_crowd(const Exchange& exchange, const std::vector<int>& sources,
                              std::vector<std::unique_ptr<Parcel>>& received) {
  std::vector<std::unique_ptr<Parcel>> came(received.size());
  for (size_t i = exchange.first_of_crowd; i < received.size(); ++i) {
    if (!received[i]) continue;
    size_t route = exchange.first_of_crowd;
    while (route < came.size() && (came[route] || exchange.routes[route].from != sources[i])) ++route;
    if (route == came.size()) return "from any source: one of rank " + std::to_string(sources[i]) + " too many";
    received[i]->came_by(exchange.routes[route]);
    came[route] = std::move(received[i]);
  }
  std::move(came.begin() + static_cast<ptrdiff_t>(exchange.first_of_crowd), came.end(),
            received.begin() + static_cast<ptrdiff_t>(exchange.first_of_crowd));
  return "";
}

}  // namespace fccl::core::testing
