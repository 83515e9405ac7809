// Keeps the page in memory with a descriptor while there are communicators. Other processes find it by the descriptor.
#include "metrics/process_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "base/check.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "os/per_process.h"

namespace fccl::core::metrics {
namespace {

struct Process {
  std::mutex mutex;
  Page* page = nullptr;
  Descriptor memory;
  std::set<const CommunicatorPart*> communicators;  // hidden ones, too
  void (*when_unused)() = nullptr;

  void make();
  void show();
};

constinit PerProcess<Process> process;

// Returns an empty descriptor if the kernel refuses; then no other process sees the page.
Descriptor memory_for_page() {
  if (longest_file() < sizeof(Page)) return {};
  Descriptor memory(::memfd_create(kMemoryName, MFD_CLOEXEC));
  if (memory && ::ftruncate(memory.get(), sizeof(Page)) != 0) return {};
  return memory;
}

void Process::make() {
  void* mapped = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(mapped != MAP_FAILED, "the system gives a few addresses");
  page = static_cast<Page*>(mapped);
  page->magic = kMagic;
  page->process = ::getpid();
}

// Maps the shared page over the private one, at the same address, because other threads keep writing counts of rails.
void Process::show() {
  memory = memory_for_page();
  if (!memory) return;
  const bool has_sums = value_of(page->gone.called) != 0;
  const auto kept = static_cast<ssize_t>(has_sums ? offsetof(Page, communicators) : offsetof(Page, gone));
  const bool copied = ::pwrite(memory.get(), page, static_cast<size_t>(kept), 0) == kept;
  if (!copied || ::mmap(page, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.get(), 0) == MAP_FAILED)
    memory.close();
}

Process& own_process() {
  Process& own = process.get();
  const std::lock_guard lock(own.mutex);
  if (own.page == nullptr) own.make();
  return own;
}

void add_up(Calls& sum, const Calls& calls) {
  raise(sum.calls, value_of(calls.calls));
  raise(sum.bytes, value_of(calls.bytes));
  raise(sum.timed, value_of(calls.timed));
  raise(sum.nanoseconds, value_of(calls.nanoseconds));
  raise(sum.copied, value_of(calls.copied));
  for (size_t i = 0; i < kBuckets; ++i) raise(sum.buckets[i], value_of(calls.buckets[i]));
}

void fold(CallTable& into, const CallTable& ended) {
  for (int collective = 0; collective < fcclNumColls; ++collective) {
    if (!ended.has(collective)) continue;
    for (size_t path = 0; path < kPaths; ++path)
      for (size_t size = 0; size < kSizes; ++size)
        add_up(into.of[static_cast<size_t>(collective)][path][size], ended.of[static_cast<size_t>(collective)][path][size]);
  }
  into.called.fetch_or(value_of(ended.called), std::memory_order_relaxed);
}

// Skips collectives that were never called: their entries are still zero.
void clear(CommunicatorPart& ended) {
  for (int collective = 0; collective < fcclNumColls; ++collective)
    if (ended.calls.has(collective))
      std::memset(static_cast<void*>(&ended.calls.of[static_cast<size_t>(collective)]), 0, sizeof(CallsOfCollective));
  std::memset(static_cast<void*>(&ended), 0, offsetof(CommunicatorPart, calls) + offsetof(CallTable, of));
}

}  // namespace

Page& page_of_process() { return *own_process().page; }

bool has_communicators() {
  Process& own = own_process();
  const std::lock_guard lock(own.mutex);
  return !own.communicators.empty();
}

void call_when_unused(void (*tell)()) {
  Process& own = own_process();
  const std::lock_guard lock(own.mutex);
  own.when_unused = tell;
}

void with_own_page(const std::function<void(const Page&)>& read) {
  Process& own = own_process();
  const std::lock_guard lock(own.mutex);
  read(*own.page);
}

void count_error(fcclResult_t kind, std::string_view text) {
  if (kind <= fcclSuccess || kind >= fcclNumResults) return;
  std::array<uint64_t, std::tuple_size_v<FailureText>> words{};
  text.copy(reinterpret_cast<char*>(words.data()), sizeof words - 1);
  Page& page = page_of_process();
  const std::lock_guard lock(process.get().mutex);
  page.errors[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  page.failed_ms.store(to_ms(Clock::now()), std::memory_order_relaxed);
  for (size_t i = 0; i < words.size(); ++i) page.last_failure[i].store(words[i], std::memory_order_relaxed);
}

void write_name(Name& into, std::string_view name) {
  std::ranges::copy_n(name.begin(), static_cast<ptrdiff_t>(std::min(name.size(), into.size() - 1)), into.begin());
}

void show_network(const NetworkNames& names) {
  Process& own = own_process();
  const std::lock_guard lock(own.mutex);
  const auto show = [](Name& place, std::string_view name) {
    if (place[0] == 0) write_name(place, name);
  };
  show(own.page->transport, names.transport);
  show(own.page->provider, names.provider);
  for (size_t rail = 0; rail < std::min(names.nics.size(), own.page->rails.size()); ++rail)
    show(own.page->rails[rail].nic, names.nics[rail]);
}

void read_words(const Page& page, size_t at, std::span<char> into) {
  static_assert(sizeof(Page) % sizeof(uint64_t) == 0);
  const char* from = reinterpret_cast<const char*>(&page) + at;
  for (size_t i = 0; i < into.size(); i += sizeof(uint64_t)) {
    const uint64_t word = __atomic_load_n(reinterpret_cast<const uint64_t*>(from + i), __ATOMIC_RELAXED);
    std::memcpy(into.data() + i, &word, sizeof word);
  }
}

CommunicatorPlace::CommunicatorPlace() {
  Process& own = own_process();
  const std::lock_guard lock(own.mutex);
  if (own.communicators.empty()) own.show();
  const auto free = std::ranges::find_if(own.page->communicators,
                                         [&](const CommunicatorPart& each) { return !own.communicators.contains(&each); });
  if (free == own.page->communicators.end()) hidden_ = std::make_unique<CommunicatorPart>();
  part_ = hidden_ ? hidden_.get() : &*free;
  own.communicators.insert(part_);
}

// A fork does not own its parent's places, and leaves them alone.
CommunicatorPlace::~CommunicatorPlace() {
  Process& own = own_process();
  std::unique_lock lock(own.mutex);
  if (own.communicators.erase(part_) == 0) return;
  fold(own.page->gone, part_->calls);
  if (!hidden_) clear(*part_);
  if (!own.communicators.empty()) return;
  own.memory.close();
  const auto tell = own.when_unused;
  lock.unlock();
  if (tell != nullptr) tell();
}

void CommunicatorPlace::show(const std::function<void(CommunicatorPart&)>& write) {
  Process& own = own_process();
  const std::lock_guard lock(own.mutex);
  write(*part_);
  part_->is_shown.store(1, std::memory_order_release);
}

void add(fcclCallMetrics_t& sum, const Calls& calls) {
  sum.calls += value_of(calls.calls);
  sum.bytes += value_of(calls.bytes);
  sum.timed += value_of(calls.timed);
  sum.copied += value_of(calls.copied);
  sum.seconds += 1e-9 * static_cast<double>(value_of(calls.nanoseconds));
  for (size_t i = 0; i < kBuckets; ++i) sum.buckets[i] += value_of(calls.buckets[i]);
}

fcclCallMetrics_t calls_of_process(fcclColl_t collective, size_t path, size_t size) {
  Process& own = own_process();
  const std::lock_guard lock(own.mutex);
  fcclCallMetrics_t sum{};
  if (own.page->gone.has(collective)) add(sum, own.page->gone.of[collective][path][size]);
  for (const CommunicatorPart* each : own.communicators)
    if (each->calls.has(collective)) add(sum, each->calls.of[collective][path][size]);
  return sum;
}

}  // namespace fccl::core::metrics
