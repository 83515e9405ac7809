// Gpu: its life, what every call asks first, and what is enqueued.
#include "devices/gpu.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "devices/landing.h"

namespace fccl::core::simulated {

namespace {

using Why = Refusal::Why;

std::atomic<uint64_t> gpus_made{0};
struct CurrentGpu {
  Gpu* gpu;
  Gpu::Caller caller;
};
thread_local std::vector<CurrentGpu> current_gpus;

bool has_come(const std::atomic<uint64_t>& word, uint64_t target) {
  return static_cast<int64_t>(word.load(std::memory_order_acquire) - target) >= 0;
}

// What is released by a number so far ahead, after a failure, copies garbage from and to memory that others use, too: races
// that nobody minds. So under the thread sanitizer it copies nothing.
constexpr uint64_t kReleases = uint64_t{1} << 61;
#if defined(__SANITIZE_THREAD__)
constexpr bool kSkipsReleased = true;
#else
constexpr bool kSkipsReleased = false;
#endif

bool is_host(Region::Kind kind) {
  using enum Region::Kind;
  return kind == pinned || kind == registered || kind == device_address;
}

// The host may not touch it.
bool is_of_gpu(Region::Kind kind) { return kind == Region::Kind::device || kind == Region::Kind::piece; }

// Deletes a chain, youngest first.
template <class T>
void delete_all(void* youngest) {
  for (auto* link = static_cast<T*>(youngest); link != nullptr;) {
    T* const older = link->older;
    delete link;
    link = older;
  }
}

}  // namespace

void Gpu::push_current(Gpu* gpu, Caller caller) { current_gpus.push_back({gpu, caller}); }

Gpu* Gpu::pop_current() {
  if (current_gpus.empty()) return nullptr;
  Gpu* const last = current_gpus.back().gpu;
  current_gpus.pop_back();
  return last;
}

Gpu* Gpu::current() { return current_gpus.empty() ? nullptr : current_gpus.back().gpu; }

Gpu::Gpu(const GpuOptions& options) : progress_(options), serial_(gpus_made.fetch_add(1) + 1), fails_call_(options.fails_call) {
  default_queue_ = new_queue();
}

Gpu::~Gpu() {
  progress_.over.store(true, kRelaxed);
  for (auto* channel = static_cast<Channel*>(channels_.get()); channel != nullptr; channel = channel->older) channel->close();
  for (Patience patience; progress_.threads.load(std::memory_order_acquire) != 0;) patience.look_again_later();
  for (Region region; find_region_of(this, region);) {
    remove_region(region.begin);
    using enum Region::Kind;
    if (region.kind == queue || region.kind == mark || region.kind == registered || region.kind == piece) continue;
    ::munmap(region.begin, region.bytes);
    if (region.kind == device) ::munmap(region.real, region.bytes);
  }
  for (auto* mark = static_cast<GpuMark*>(marks_.get()); mark != nullptr; mark = mark->older) {
    delete_all<Record>(mark->latest.get());
  }
  delete_all<GpuMark>(marks_.get());
  delete_all<GpuQueue>(queues_.get());
  delete_all<Channel>(channels_.get());
}

std::string Gpu::name() const { return fmt::format("simulated GPU {}", options().ordinal); }

Answer<void> Gpu::begin_call(const char* call) {
  if (current() != this)
    return refuse(Why::not_current,
                  fmt::format("{} was called on a thread where {} is not current; hold a Device::Use", call, name()));
  door_.pass();
  if (current_gpus.back().caller == Caller::test) return {};
  if (calls_.fetch_add(1, kRelaxed) + 1 == fails_call_.load(kRelaxed))
    return refuse(Why::injected, fmt::format("{} of {} failed, as the test asked", call, name()));
  if (progress_.broken.load(kRelaxed))
    return refuse(Why::broken, fmt::format("{} found that {} is broken: an earlier operation failed", call, name()));
  return {};
}

Answer<void> Gpu::begin_set_up(const char* call) {
  if (auto begun = begin_call(call); !begun) return begun;
  if (!options().set_up_waits) return {};
  door_.shut();
  progress_.wait_until([this] { return progress_.enqueued.load(kRelaxed) == progress_.finished.load(kRelaxed); });
  door_.open();
  return {};
}

Answer<void> Gpu::begin_enqueue(const char* call, const GpuQueue* queue) {
  if (auto begun = begin_call(call); !begun) return begun;
  if (queue->capturing.load(kRelaxed))
    return refuse(Why::capturing, fmt::format("{} was called on a queue of {} that records a graph", call, name()));
  return {};
}

void Gpu::put(GpuQueue* queue, size_t slots, Work work) {
  const auto fits = [&] { return queue->outstanding() + slots <= options().queue_slots; };
  if (!fits()) {
    door_.shut();
    progress_.wait_until(fits);
    door_.open();
  }
  queue->channel->put(*queue, slots, std::move(work));
}

Answer<void> Gpu::copy(GpuQueue* queue, const Copy& copy) {
  if (auto begun = begin_enqueue("copy", queue); !begun) return begun;
  if (copy.bytes == 0 || copy.rows == 0) return {};
  if (copy.rows > 1 && (copy.to_pitch < copy.bytes || copy.from_pitch < copy.bytes))
    return refuse(Why::invalid, fmt::format("a copy of {} rows of {} bytes has pitches of {} and {}, so its rows overlap",
                                            copy.rows, copy.bytes, copy.to_pitch, copy.from_pitch));
  if (copy.rows > 1 && std::max(copy.to_pitch, copy.from_pitch) > options().most_pitch)
    return refuse(Why::invalid, fmt::format("a copy has pitches of {} and {} bytes; {} has at most {}", copy.to_pitch,
                                            copy.from_pitch, name(), options().most_pitch));
  const auto to = reach("to", copy.to, copy.bytes, copy.rows, copy.to_pitch);
  if (!to) return tl::make_unexpected(to.error());
  const auto from = reach("from", copy.from, copy.bytes, copy.rows, copy.from_pitch);
  if (!from) return tl::make_unexpected(from.error());
  if (copy.rows == 1 && *to < *from + copy.bytes && *from < *to + copy.bytes)
    return refuse(Why::invalid, fmt::format("a copy of {} bytes overlaps itself", copy.bytes));
  Region target;
  find_region(copy.to, target);
  if (target.read_only)
    return refuse(Why::invalid, fmt::format("a copy to {}, which was pinned for reading alone", fmt::ptr(copy.to)));
  const RealCopy real_copy{*to, *from, copy.bytes, copy.rows, copy.to_pitch, copy.from_pitch, !is_of_gpu(target.kind)};
  put(queue, 1, [real_copy, queue](Dice& dice) {
    if (!kSkipsReleased || !queue->released) land(real_copy, dice);
  });
  Region source;
  find_region(copy.from, source);
  // As CUDA's do: fully synchronous, whatever their name says. It keeps nobody else waiting.
  if (is_host(source.kind) && is_host(target.kind)) {
    const uint64_t enqueued = queue->enqueued.load(kRelaxed);
    progress_.wait_until([&] { return queue->finished.load(std::memory_order_acquire) >= enqueued; });
  }
  return {};
}

Answer<void> Gpu::words(GpuQueue* queue, std::span<const WordOperation> operations) {
  if (auto begun = begin_enqueue("words", queue); !begun) return begun;
  if (!options().waits_for_words) return refuse(Why::unsupported, fmt::format("{} has no stream memory operations", name()));
  if (operations.size() > options().words_per_call)
    return refuse(Why::invalid, fmt::format("words was called with {} operations; {} takes at most {}", operations.size(),
                                            name(), options().words_per_call));
  for (const WordOperation& operation : operations) {
    if (auto word = word_at(operation.word); !word) return tl::make_unexpected(word.error());
  }
  for (const WordOperation& operation : operations) {
    std::atomic<uint64_t>* const word = *word_at(operation.word);
    const uint64_t value = operation.value;
    if (operation.kind == WordOperation::Kind::write) {
      put(queue, 1, [word, value](Dice&) { word->store(value, std::memory_order_release); });
    } else {
      put(queue, 1, [this, queue, word, value](Dice&) {
        progress_.wait_until([&] { return has_come(*word, value); });
        if (has_come(*word, value + kReleases)) queue->released = true;
      });
    }
  }
  return {};
}

Answer<void> Gpu::record(GpuQueue* queue, GpuMark* mark) {
  if (auto begun = begin_enqueue("record", queue); !begun) return begun;
  if (auto checked = check_mark("record", mark); !checked) return checked;
  auto* const fresh = new Record;
  fresh->older = static_cast<Record*>(mark->latest.exchange(fresh));
  put(queue, 1, [fresh](Dice&) {
    fresh->at_ns.store(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1), kRelaxed);
    fresh->done.store(true, std::memory_order_release);
  });
  return {};
}

Answer<void> Gpu::await(GpuQueue* queue, GpuMark* mark) {
  if (auto begun = begin_enqueue("await", queue); !begun) return begun;
  if (auto checked = check_mark("await", mark); !checked) return checked;
  auto* const latest = static_cast<Record*>(mark->latest.get());
  if (latest == nullptr) return {};
  put(queue, 1, [this, latest](Dice&) { progress_.wait_until([&] { return latest->done.load(std::memory_order_acquire); }); });
  return {};
}

Answer<void> Gpu::launch(GpuQueue* queue, std::function<void()> kernel) {
  if (auto begun = begin_enqueue("launch", queue); !begun) return begun;
  put(queue, 1, [kernel = std::move(kernel)](Dice&) { kernel(); });
  return {};
}

}  // namespace fccl::core::simulated
