// Counts per communicator, and their sum over the process.
#include "operations/statistics.h"

#include <mutex>
#include <set>

#include "system/per_process.h"

namespace fccl {
namespace {

struct Process {
  std::mutex mutex;
  std::set<const Statistics*> alive;
  std::array<fcclCounter_t, fcclNumColls> ended{};
};

constinit PerProcess<Process> process;

void add(fcclCounter_t& sum, const fcclCounter_t& counter) {
  sum.calls += counter.calls;
  sum.bytes += counter.bytes;
  sum.seconds += counter.seconds;
}

// One writer, so no read-modify-write is needed.
template <class T>
void raise(std::atomic<T>& value, T by) {
  value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

Statistics::Statistics() {
  Process& all = process.get();
  const std::lock_guard lock(all.mutex);
  all.alive.insert(this);
}

// In a fork, the parent's are not its own.
Statistics::~Statistics() {
  Process& all = process.get();
  const std::lock_guard lock(all.mutex);
  if (all.alive.erase(this) == 0) return;
  for (size_t i = 0; i < entries_.size(); ++i) add(all.ended[i], of(static_cast<fcclColl_t>(i)));
}

void Statistics::count(fcclColl_t collective, uint64_t bytes, double seconds, uint64_t calls) {
  Entry& entry = entries_[collective];
  raise(entry.calls, calls);
  raise(entry.bytes, bytes);
  if (seconds > 0) raise(entry.seconds, seconds);
}

fcclCounter_t Statistics::of(fcclColl_t collective) const {
  const Entry& entry = entries_[collective];
  return {entry.calls.load(std::memory_order_relaxed), entry.bytes.load(std::memory_order_relaxed),
          entry.seconds.load(std::memory_order_relaxed)};
}

fcclCounter_t Statistics::of_process(fcclColl_t collective) {
  Process& all = process.get();
  const std::lock_guard lock(all.mutex);
  fcclCounter_t sum = all.ended[collective];
  for (const Statistics* statistics : all.alive) add(sum, statistics->of(collective));
  return sum;
}

}  // namespace fccl
