// Gpu: memory, queues and marks as things that are made, found and gone.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "devices/gpu.h"
#include "os/descriptor.h"

namespace fccl::core::simulated {

namespace {

using Why = Refusal::Why;
using Kind = Region::Kind;

const size_t kPage = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

// A queue of the calling thread's own; it has one for each GPU.
struct QueueOfThread {
  uint64_t gpu = 0;
  GpuQueue* queue = nullptr;
};
thread_local std::vector<QueueOfThread> queues_of_thread;

std::byte* map(size_t bytes, int protection, int descriptor) {
  const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const made = ::mmap(nullptr, bytes, protection, flags, descriptor, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

bool is_memory(Kind kind) { return kind != Kind::queue && kind != Kind::mark; }

// Maps device memory twice: at the address that users see nobody may touch it, at the other the GPU uses it.
Region map_device_memory(size_t bytes) {
  const Descriptor memory(::memfd_create("fccl-simulated-gpu", MFD_CLOEXEC));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return {};
  std::byte* const seen = map(bytes, PROT_NONE, memory.get());
  std::byte* const used = map(bytes, PROT_READ | PROT_WRITE, memory.get());
  return {seen, bytes, used, Kind::device, nullptr, nullptr};
}

template <class T>
void put_into_chain(UnseenPointer& chain, T* made) {
  made->older = static_cast<T*>(chain.exchange(made));
}

}  // namespace

std::byte* real(const void* address) {
  Region region;
  if (!find_region(address, region) || !is_memory(region.kind)) return nullptr;
  return region.real + (static_cast<const std::byte*>(address) - region.begin);
}

Answer<std::byte*> Gpu::allocate(Region::Kind kind, size_t bytes) {
  if (auto begun = begin_call("allocate"); !begun) return tl::make_unexpected(begun.error());
  if (bytes == 0) return refuse(Why::invalid, fmt::format("{} was asked for memory of 0 bytes", name()));
  Region made;
  if (kind == Kind::device) {
    made = map_device_memory(bytes);
  } else {
    std::byte* const memory = map(bytes, PROT_READ | PROT_WRITE, -1);
    made = {memory, bytes, memory, kind, nullptr, nullptr};
  }
  if (made.begin == nullptr || made.real == nullptr)
    return refuse(Why::invalid, fmt::format("{} has no {} bytes of memory", name(), bytes));
  made.gpu = this;
  add_region(made);
  return made.begin;
}

Answer<void> Gpu::free(const std::byte* memory) {
  if (auto begun = begin_call("free"); !begun) return begun;
  door_.shut();
  progress_.wait_until([this] { return progress_.enqueued.load(kRelaxed) == progress_.finished.load(kRelaxed); });
  door_.open();
  Region region;
  const bool ours = find_region(memory, region) && region.begin == memory && region.gpu == this &&
                    (region.kind == Kind::device || region.kind == Kind::managed || region.kind == Kind::pinned);
  if (!ours) return refuse(Why::invalid, fmt::format("free was called for memory that {} did not make", name()));
  remove_region(memory);
  ::munmap(region.begin, region.bytes);
  if (region.kind == Kind::device) ::munmap(region.real, region.bytes);
  return {};
}

Answer<std::byte*> Gpu::pin(std::span<std::byte> memory, Pins how) {
  if (auto begun = begin_set_up("pin"); !begun) return tl::make_unexpected(begun.error());
  const bool read_only = how == Pins::read_only;
  if (read_only && !options().pins_read_only)
    return refuse(Why::unsupported, fmt::format("{} does not pin memory for reading alone", name()));
  if (memory.empty() || reinterpret_cast<uintptr_t>(memory.data()) % kPage != 0 || memory.size() % kPage != 0)
    return refuse(Why::invalid, fmt::format("pin wants whole pages of {} bytes, and was given {} bytes at {}", kPage,
                                            memory.size(), fmt::ptr(memory.data())));
  std::byte* const address = map(memory.size(), PROT_NONE, -1);
  if (!add_region({memory.data(), memory.size(), memory.data(), Kind::registered, this, address, read_only})) {
    ::munmap(address, memory.size());
    return refuse(Why::already_pinned,
                  fmt::format("pin was called for memory at {} that is pinned already", fmt::ptr(memory.data())));
  }
  add_region({address, memory.size(), memory.data(), Kind::device_address, this, memory.data(), read_only});
  return address;
}

Answer<void> Gpu::unpin(const std::byte* memory) {
  if (auto begun = begin_set_up("unpin"); !begun) return begun;
  Region region;
  if (!find_region(memory, region) || region.begin != memory || region.kind != Kind::registered)
    return refuse(Why::not_pinned, fmt::format("unpin was called for memory at {} that is not pinned", fmt::ptr(memory)));
  remove_region(memory);
  remove_region(region.twin);
  ::munmap(region.twin, region.bytes);
  return {};
}

namespace {

// The bytes from an address to the end of its region, and of the pieces of memory that lie behind it without a gap.
size_t bytes_from(const std::byte* begin, const Region& region) {
  size_t bytes = region.bytes - static_cast<size_t>(begin - region.begin);
  if (region.kind != Kind::piece) return bytes;
  Region next;
  while (find_region(begin + bytes, next) && next.kind == Kind::piece && next.gpu == region.gpu &&
         next.real - region.real == next.begin - region.begin)
    bytes += next.bytes;
  return bytes;
}

}  // namespace

Answer<std::byte*> Gpu::reach(const char* what, const std::byte* begin, size_t bytes, size_t rows, size_t pitch) const {
  Region region;
  if (!find_region(begin, region) || !is_memory(region.kind))
    return refuse(Why::invalid,
                  fmt::format("a copy {} {}, which is neither memory of a GPU nor pinned", what, fmt::ptr(begin)));
  if (region.kind == Kind::registered && !options().takes_host_addresses)
    return refuse(Why::invalid, fmt::format("a copy {} {}, which is the host's address of pinned memory; the GPU finds it at "
                                            "PinnedMemory::device_address",
                                            what, fmt::ptr(begin)));
  const size_t left = bytes_from(begin, region);
  if ((rows - 1) * pitch + bytes > left)
    return refuse(Why::invalid, fmt::format("a copy {} {} of {} rows of {} bytes ends beyond its memory, which has {} bytes "
                                            "from there",
                                            what, fmt::ptr(begin), rows, bytes, left));
  return region.real + (begin - region.begin);
}

Answer<std::atomic<uint64_t>*> Gpu::word_at(const std::byte* word) const {
  if (reinterpret_cast<uintptr_t>(word) % sizeof(uint64_t) != 0)
    return refuse(Why::invalid, fmt::format("a word lies at {}, which is not a multiple of 8", fmt::ptr(word)));
  Region region;
  if (!find_region(word, region) || (region.kind != Kind::device_address && region.kind != Kind::pinned))
    return refuse(Why::invalid,
                  fmt::format("a word lies at {}, which is not an address of the GPU's in pinned memory", fmt::ptr(word)));
  if (region.read_only)
    return refuse(Why::invalid, fmt::format("a word lies at {}, which was pinned for reading alone", fmt::ptr(word)));
  return reinterpret_cast<std::atomic<uint64_t>*>(region.real + (word - region.begin));
}

GpuQueue* Gpu::new_queue() {
  const uint64_t number = queues_made_.fetch_add(1, kRelaxed);
  auto* const made = new GpuQueue;
  if (only_channel_ == nullptr) {
    auto* const channel = new Channel(progress_, options().seed * 1000 + number);
    put_into_chain(channels_, channel);
    if (options().one_queue) only_channel_ = channel;
    made->channel = channel;
  } else {
    made->channel = only_channel_;
  }
  put_into_chain(queues_, made);
  add_region({reinterpret_cast<std::byte*>(made), sizeof(GpuQueue), nullptr, Kind::queue, this, nullptr});
  return made;
}

Answer<GpuQueue*> Gpu::make_queue() {
  if (auto begun = begin_set_up("make_queue"); !begun) return tl::make_unexpected(begun.error());
  return new_queue();
}

Answer<GpuMark*> Gpu::make_mark() {
  if (auto begun = begin_set_up("make_mark"); !begun) return tl::make_unexpected(begun.error());
  auto* const made = new GpuMark;
  put_into_chain(marks_, made);
  add_region({reinterpret_cast<std::byte*>(made), sizeof(GpuMark), nullptr, Kind::mark, this, nullptr});
  return made;
}

Answer<void> Gpu::drop(GpuQueue* queue) {
  if (auto begun = begin_set_up("drop"); !begun) return begun;
  if (queue == default_queue_ || !remove_region(queue))
    return refuse(Why::invalid, fmt::format("drop was called for a queue that {} did not make, or twice", name()));
  if (!options().one_queue) queue->channel->close();
  return {};
}

Answer<void> Gpu::drop(GpuMark* mark) {
  if (auto begun = begin_set_up("drop"); !begun) return begun;
  if (auto checked = check_mark("drop", mark); !checked) return checked;
  remove_region(mark);
  return {};
}

Answer<void> Gpu::check_mark(const char* call, const GpuMark* mark) const {
  Region region;
  if (find_region(mark, region) && region.kind == Kind::mark && region.gpu == this) return {};
  return refuse(Why::invalid, fmt::format("{} was called with a mark that {} has not, or has no more", call, name()));
}

GpuQueue* Gpu::queue_of_thread() {
  for (const QueueOfThread& made : queues_of_thread) {
    if (made.gpu == serial_) return made.queue;
  }
  queues_of_thread.push_back({serial_, new_queue()});
  return queues_of_thread.back().queue;
}

Answer<GpuQueue*> Gpu::queue_of(const void* native) {
  const auto number = reinterpret_cast<uintptr_t>(native);
  if (number <= 1) return default_queue_;
  if (number == 2) return queue_of_thread();
  Region region;
  if (find_region(native, region) && region.kind == Kind::queue && region.gpu == this)
    return reinterpret_cast<GpuQueue*>(region.begin);
  return refuse(Why::invalid, fmt::format("{} was given a queue that it has not, or has no more", name()));
}

Answer<bool> Gpu::is_capturing(GpuQueue* queue) {
  if (auto begun = begin_call("is_capturing"); !begun) return tl::make_unexpected(begun.error());
  return queue->capturing.load(kRelaxed);
}

Answer<bool> Gpu::is_idle(GpuQueue* queue) {
  if (auto begun = begin_call("is_idle"); !begun) return tl::make_unexpected(begun.error());
  if (queue->outstanding() != 0) return false;
  return queue->finished.load(std::memory_order_acquire) == queue->enqueued.load(kRelaxed);
}

Answer<bool> Gpu::is_done(GpuMark* mark) {
  if (auto begun = begin_call("is_done"); !begun) return tl::make_unexpected(begun.error());
  if (auto checked = check_mark("is_done", mark); !checked) return tl::make_unexpected(checked.error());
  const auto* const latest = static_cast<Record*>(mark->latest.get());
  return latest == nullptr || latest->done.load(std::memory_order_acquire);
}

Answer<void> Gpu::synchronize(GpuQueue* queue) {
  if (auto begun = begin_call("synchronize"); !begun) return begun;
  const uint64_t enqueued = queue->enqueued.load(kRelaxed);
  progress_.wait_until([&] { return queue->finished.load(std::memory_order_acquire) >= enqueued; });
  return {};
}

Answer<void> Gpu::synchronize(GpuMark* mark) {
  if (auto begun = begin_call("synchronize"); !begun) return begun;
  if (auto checked = check_mark("synchronize", mark); !checked) return checked;
  const auto* const latest = static_cast<Record*>(mark->latest.get());
  progress_.wait_until([&] { return latest == nullptr || latest->done.load(std::memory_order_acquire); });
  return {};
}

Answer<void> Gpu::synchronize_all() {
  if (auto begun = begin_call("synchronize_all"); !begun) return begun;
  for (auto* queue = static_cast<GpuQueue*>(queues_.get()); queue != nullptr; queue = queue->older) {
    progress_.wait_until([&] { return queue->finished.load(std::memory_order_acquire) == queue->enqueued.load(kRelaxed); });
  }
  return {};
}

Answer<double> Gpu::seconds_between(GpuMark* from, GpuMark* to) {
  if (auto begun = begin_call("seconds_between"); !begun) return tl::make_unexpected(begun.error());
  std::array<int64_t, 2> at_ns{};
  for (size_t i = 0; i < 2; ++i) {
    GpuMark* const mark = i == 0 ? from : to;
    if (auto checked = check_mark("seconds_between", mark); !checked) return tl::make_unexpected(checked.error());
    const auto* const latest = static_cast<Record*>(mark->latest.get());
    if (latest == nullptr || !latest->done.load(std::memory_order_acquire))
      return refuse(Why::invalid, fmt::format("{} was asked for the time between marks that are not done", name()));
    at_ns[i] = latest->at_ns.load(kRelaxed);
  }
  return static_cast<double>(at_ns[1] - at_ns[0]) * 1e-9;
}

Answer<void> Gpu::set_capturing(GpuQueue* queue, bool capturing) {
  if (auto begun = begin_call("set_capturing"); !begun) return begun;
  queue->capturing.store(capturing, kRelaxed);
  return {};
}

}  // namespace fccl::core::simulated
