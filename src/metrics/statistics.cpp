// Counts per communicator, and sums over the process.
#include "metrics/statistics.h"

#include <algorithm>

#include "os/clock.h"

namespace fccl::core {

using metrics::value_of;

namespace {

// True for paths whose every call is timed, as fcclCounter_t needs: the seconds leave out paths of which only one call in 64 is
// timed.
bool are_all_timed(size_t path) { return path >= metrics::kSampledPaths; }

template <class CallsOf>
fcclCounter_t counter_of(const CallsOf& calls_of) {
  fcclCounter_t counter{};
  for (size_t path = 0; path < metrics::kPaths; ++path)
    for (size_t size = 0; size < metrics::kSizes; ++size) {
      const fcclCallMetrics_t calls = calls_of(path, size);
      counter.calls += calls.calls;
      counter.bytes += calls.bytes;
      if (are_all_timed(path)) counter.seconds += calls.seconds;
    }
  return counter;
}

}  // namespace

void Statistics::show(const std::string& name, int rank, int ranks, const std::vector<int>& processes) {
  place_.show([&](metrics::CommunicatorPart& part) {
    metrics::write_name(part.name, name);
    part.rank = rank;
    part.ranks = ranks;
    part.places = static_cast<int32_t>(std::min(processes.size(), part.processes.size()));
    std::ranges::copy_n(processes.begin(), part.places, part.processes.begin());
  });
}

void Statistics::show_init(double seconds) {
  place_.part().init_us.store(static_cast<uint64_t>(1e6 * seconds), std::memory_order_relaxed);
}

void Statistics::count_copied(const Copied& copied) {
  metrics::CallTable& table = place_.part().calls;
  table.called.fetch_or(uint64_t{1} << copied.collective, std::memory_order_relaxed);
  table.of[copied.collective][copied.path][metrics::size_class_of(copied.bytes)].add_copied(copied.read);
}

// Two calls may wait for one peer, each on a lane of its own.
void Statistics::show_wait(size_t lane, const InFlight& call, std::chrono::nanoseconds span) {
  metrics::CommunicatorPart& part = place_.part();
  metrics::Flight& flight = part.flights[lane];
  flight.collective.store(call.collective, std::memory_order_relaxed);
  flight.bytes.store(call.bytes, std::memory_order_relaxed);
  flight.since_ms.store(to_ms(call.since), std::memory_order_relaxed);
  flight.awaited.store(call.awaited, std::memory_order_relaxed);
  flight.is_shown.store(1, std::memory_order_release);
  if (call.awaited >= 0 && call.awaited < metrics::kPeers)
    part.waited_us[static_cast<size_t>(call.awaited)].fetch_add(static_cast<uint64_t>(span.count()) / 1000,
                                                                std::memory_order_relaxed);
}

void Statistics::end_wait(size_t lane) { place_.part().flights[lane].is_shown.store(0, std::memory_order_release); }

fcclCallMetrics_t Statistics::calls_of(fcclColl_t collective, size_t path, size_t size) const {
  fcclCallMetrics_t sum{};
  const metrics::CallTable& table = place_.part().calls;
  if (table.has(collective)) metrics::add(sum, table.of[collective][path][size]);
  return sum;
}

fcclCounter_t Statistics::of(fcclColl_t collective) const {
  return counter_of([&](size_t path, size_t size) { return calls_of(collective, path, size); });
}

double Statistics::waited_for(int peer) const {
  if (peer < 0 || peer >= metrics::kPeers) return 0;
  return 1e-6 * static_cast<double>(value_of(place_.part().waited_us[static_cast<size_t>(peer)]));
}

fcclCallInFlight_t Statistics::oldest_in_flight() const {
  const metrics::Flight* oldest = nullptr;
  for (const metrics::Flight& flight : place_.part().flights) {
    if (flight.is_shown.load(std::memory_order_acquire) == 0) continue;
    if (oldest == nullptr || value_of(flight.since_ms) < value_of(oldest->since_ms)) oldest = &flight;
  }
  fcclCallInFlight_t told{.size = 0, .coll = fcclNumColls, .bytes = 0, .seconds = 0, .peer = -1};
  if (oldest == nullptr) return told;
  told.coll = static_cast<fcclColl_t>(value_of(oldest->collective));
  told.bytes = value_of(oldest->bytes);
  told.seconds = 1e-3 * static_cast<double>(to_ms(Clock::now()) - value_of(oldest->since_ms));
  told.peer = static_cast<int>(oldest->awaited.load(std::memory_order_relaxed));
  return told;
}

fcclCounter_t Statistics::of_process(fcclColl_t collective) {
  return counter_of([&](size_t path, size_t size) { return metrics::calls_of_process(collective, path, size); });
}

}  // namespace fccl::core
