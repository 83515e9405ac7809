// Puts the parts of one communicator, which several pages hold, side by side.
#include "fccl_info/look.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace fccl::core {
namespace {

using metrics::CommunicatorPart;
using metrics::Flight;
using metrics::PageCopy;
using metrics::value_of;

// A rank that a page shows.
struct Shown {
  const PageCopy* page;
  const CommunicatorPart* part;
};

struct Done {
  uint64_t calls = 0, bytes = 0;
};

Done done_by(const CommunicatorPart& part) {
  Done sum;
  for (int collective = 0; collective < fcclNumColls; ++collective)
    if (part.calls.has(collective))
      for (const auto& path : part.calls.of[static_cast<size_t>(collective)])
        for (const metrics::Calls& calls : path) {
          sum.calls += value_of(calls.calls);
          sum.bytes += value_of(calls.bytes);
        }
  return sum;
}

// What each place of each page had done at an earlier look.
class Earlier {
 public:
  explicit Earlier(const Look* look) : at_(look == nullptr ? Clock::time_point{} : look->at) {
    if (look == nullptr) return;
    for (const Job& job : look->host.jobs)
      for (const PageCopy& page : job)
        for (const CommunicatorPart* part : page.communicators()) done_.emplace(key_of({&page, part}), done_by(*part));
  }

  // Returns ", 3.1 calls/s, 0.012 GB/s"; "" where nothing was known, or the place was another communicator's.
  std::string rates_of(const Shown& rank, const Done& done, Clock::time_point now) const {
    const auto found = done_.find(key_of(rank));
    const double seconds = std::chrono::duration<double>(now - at_).count();
    if (found == done_.end() || found->second.calls > done.calls || found->second.bytes > done.bytes || seconds <= 0) return "";
    return fmt::format(", {:.1f} calls/s, {:.3f} GB/s", static_cast<double>(done.calls - found->second.calls) / seconds,
                       1e-9 * static_cast<double>(done.bytes - found->second.bytes) / seconds);
  }

 private:
  using Key = std::tuple<int64_t, std::ptrdiff_t, std::string>;
  static Key key_of(const Shown& rank) {
    const PageCopy& page = *rank.page;
    return {page->process, rank.part - page->communicators.data(), name_of(*rank.part)};
  }

  Clock::time_point at_;
  std::map<Key, Done> done_;
};

// Tells the communicators of a job apart: by name, size and processes; then those that are equal in all of these by the order
// in which a page has them.
using CommunicatorKey = std::tuple<std::string, int, std::vector<int32_t>, int>;
using Communicators = std::map<CommunicatorKey, std::map<int, Shown>>;  // the ranks by their numbers

Communicators communicators_of(const Job& job) {
  Communicators communicators;
  for (const PageCopy& page : job)
    for (const CommunicatorPart* part : page.communicators()) {
      const auto processes = metrics::processes_of(*part);
      CommunicatorKey key(name_of(*part), part->ranks, {processes.begin(), processes.end()}, 0);
      while (!communicators[key].emplace(part->rank, Shown{&page, part}).second) ++std::get<3>(key);
    }
  return communicators;
}

bool is_waiting(const CommunicatorPart& part) {
  return std::ranges::any_of(part.flights, [](const Flight& flight) { return value_of(flight.is_shown) != 0; });
}

int64_t awaited_by(const Flight& flight) { return flight.awaited.load(std::memory_order_relaxed); }

std::string describe(const Flight& flight, uint64_t now_ms) {
  const int64_t awaited = awaited_by(flight);
  const uint64_t since = std::min(value_of(flight.since_ms), now_ms);
  return fmt::format("; in {} of {} bytes for {:.1f} s, waits for {}", collective_of(flight), value_of(flight.bytes),
                     1e-3 * static_cast<double>(now_ms - since), awaited < 0 ? "any rank" : fmt::format("rank {}", awaited));
}

std::string describe(const Shown& rank, const Earlier& earlier, Clock::time_point now) {
  const Done done = done_by(*rank.part);
  std::string text = fmt::format("    rank {}, process {}: {} calls{}", rank.part->rank, (*rank.page)->process, done.calls,
                                 earlier.rates_of(rank, done, now));
  for (const Flight& flight : rank.part->flights)
    if (value_of(flight.is_shown) != 0) text += describe(flight, to_ms(now));
  return text + (is_waiting(*rank.part) ? "\n" : "; waits in no call\n");
}

// Names each rank that others wait for and that waits for nobody: it is late, stopped or gone.
std::string late_ranks(const std::map<int, Shown>& ranks) {
  std::map<int64_t, int> waiting;  // how many calls wait for each rank
  for (const auto& [number, rank] : ranks)
    for (const Flight& flight : rank.part->flights)
      if (value_of(flight.is_shown) != 0 && awaited_by(flight) >= 0) ++waiting[awaited_by(flight)];
  std::string text;
  for (const auto& [awaited, calls] : waiting) {
    const auto here = std::ranges::find(ranks, awaited, [](const auto& rank) { return int64_t{rank.first}; });
    if (here != ranks.end() && is_waiting(*here->second.part)) continue;
    const std::string where = here == ranks.end()
                                  ? "is on another host or has ended"
                                  : fmt::format("waits in no call: look at process {}", (*here->second.page)->process);
    text += fmt::format("    -> {} call{} for rank {}, which {}\n", calls, calls == 1 ? " waits" : "s wait", awaited, where);
  }
  return text;
}

std::string describe(const Job& job, const Earlier& earlier, Clock::time_point now) {
  std::string text = fmt::format("job of process {}: {} process{} on this host\n", job.front()->process, job.size(),
                                 job.size() == 1 ? "" : "es");
  for (const auto& [key, ranks] : communicators_of(job)) {
    const auto& [name, size, processes, nth] = key;
    text += fmt::format("  communicator {}: {} of {} ranks\n", name.empty() ? "without a name" : name, ranks.size(), size);
    for (const auto& [number, rank] : ranks) text += describe(rank, earlier, now);
    text += late_ranks(ranks);
  }
  for (const PageCopy& page : job)
    if (page.communicators().empty()) text += fmt::format("  process {} is making its first communicator\n", page->process);
  return text;
}

}  // namespace

Result<Look> look_at(std::optional<int> process) {
  if (!process) return Look{Clock::now(), jobs_of_host()};
  FCCL_TRY_ASSIGN(Job job, metrics::pages_from(*process));
  Look look{Clock::now(), {}};
  look.host.jobs.push_back(std::move(job));
  return look;
}

std::string text_of(const Look& now, const Look* before) {
  const Earlier earlier(before);
  std::string text;
  for (const Job& job : now.host.jobs) text += describe(job, earlier, now.at);
  for (const std::string& each : now.host.unreadable) text += each + "\n";
  return text.empty() ? "no process of this user and host has a communicator of FCCL now\n" : text;
}

}  // namespace fccl::core
