// Gpu: its life, its queues and marks, and what is enqueued.
#include "devices/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "devices/address_space.h"

namespace fccl::core::simulated {

namespace {

using Why = Refusal::Why;

std::atomic<uint64_t> gpus_made{0};

// A queue of the calling thread's own; it has one for each GPU.
struct QueueOfThread {
  uint64_t gpu = 0;
  GpuQueue* queue = nullptr;
};
thread_local std::vector<QueueOfThread> queues_of_thread;

bool has_come(const std::atomic<uint64_t>& word, uint64_t target) {
  return static_cast<int64_t>(word.load(std::memory_order_acquire) - target) >= 0;
}

// A number so far ahead releases a queue after a failure.
constexpr uint64_t kReleases = uint64_t{1} << 61;

bool is_host(Region::Kind kind) {
  using enum Region::Kind;
  return kind == pinned || kind == registered || kind == device_address;
}

bool is_of_gpu(Region::Kind kind) { return kind == Region::Kind::device || kind == Region::Kind::piece; }

// The way of a copy on a GPU.
Way way_of(const Region& target, const Region& source, const Gpu* gpu) {
  const auto is_own = [gpu](const Region& region) { return is_of_gpu(region.kind) && region.gpu == gpu; };
  if (!is_own(target)) return Way::copies_out;
  return is_own(source) ? Way::kernels_and_words : Way::copies_in;
}

template <class T>
void put_into_chain(UnseenPointer& chain, T* made) {
  made->older = static_cast<T*>(chain.exchange(made));
}

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

Gpu::Gpu(const GpuOptions& options)
    : progress_(options),
      context_(*this, progress_),
      memory_(*this, context_),
      serial_(gpus_made.fetch_add(1) + 1),
      connections_(options.connections) {
  default_queue_ = new_queue();
}

Gpu::~Gpu() {
  progress_.over.store(true, kRelaxed);
  for (auto* channel = static_cast<Channel*>(channels_.get()); channel != nullptr; channel = channel->older) channel->close();
  for (Patience patience; progress_.threads.load(std::memory_order_acquire) != 0;) patience.look_again_later();
  for (auto* queue = static_cast<GpuQueue*>(queues_.get()); queue != nullptr; queue = queue->older) remove_region(queue);
  for (auto* mark = static_cast<GpuMark*>(marks_.get()); mark != nullptr; mark = mark->older) {
    remove_region(mark);
    delete_all<Record>(mark->latest.get());
  }
  delete_all<GpuMark>(marks_.get());
  delete_all<GpuQueue>(queues_.get());
  delete_all<Channel>(channels_.get());
}

GpuQueue* Gpu::new_queue() {
  const uint64_t number = queues_made_.fetch_add(1, kRelaxed);
  auto* const made = new GpuQueue;
  made->number = number;
  made->channel = new Channel(progress_, options().seed * 1000 + number);
  put_into_chain(channels_, made->channel);
  put_into_chain(queues_, made);
  add_region({reinterpret_cast<std::byte*>(made), sizeof(GpuQueue), nullptr, Region::Kind::queue, this, nullptr});
  return made;
}

Answer<GpuQueue*> Gpu::make_queue() {
  if (auto begun = context_.begin_set_up("make_queue"); !begun) return tl::make_unexpected(begun.error());
  return new_queue();
}

Answer<GpuMark*> Gpu::make_mark() {
  if (auto begun = context_.begin_set_up("make_mark"); !begun) return tl::make_unexpected(begun.error());
  auto* const made = new GpuMark;
  put_into_chain(marks_, made);
  add_region({reinterpret_cast<std::byte*>(made), sizeof(GpuMark), nullptr, Region::Kind::mark, this, nullptr});
  return made;
}

Answer<void> Gpu::drop(GpuQueue* queue) {
  if (auto begun = context_.begin_set_up("drop"); !begun) return begun;
  if (queue == default_queue_ || !remove_region(queue))
    return refuse(Why::invalid, fmt::format("drop was called for a queue that {} did not make, or twice", context_.name()));
  queue->channel->close();
  return {};
}

Answer<void> Gpu::drop(GpuMark* mark) {
  if (auto begun = context_.begin_set_up("drop"); !begun) return begun;
  if (auto checked = check_mark("drop", mark); !checked) return checked;
  remove_region(mark);
  return {};
}

Answer<void> Gpu::check_mark(const char* call, const GpuMark* mark) const {
  Region region;
  if (find_region(mark, region) && region.kind == Region::Kind::mark && region.gpu == this) return {};
  return refuse(Why::invalid, fmt::format("{} was called with a mark that {} has not, or has no more", call, context_.name()));
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
  if (find_region(native, region) && region.kind == Region::Kind::queue && region.gpu == this)
    return reinterpret_cast<GpuQueue*>(region.begin);
  return refuse(Why::invalid, fmt::format("{} was given a queue that it has not, or has no more", context_.name()));
}

Answer<bool> Gpu::is_capturing(GpuQueue* queue) {
  if (auto begun = context_.begin_call("is_capturing"); !begun) return tl::make_unexpected(begun.error());
  return queue->capturing.load(kRelaxed);
}

Answer<bool> Gpu::is_idle(GpuQueue* queue) {
  if (auto begun = context_.begin_call("is_idle"); !begun) return tl::make_unexpected(begun.error());
  if (queue->outstanding() != 0) return false;
  return queue->finished.load(std::memory_order_acquire) == queue->enqueued.load(kRelaxed);
}

Answer<bool> Gpu::is_done(GpuMark* mark) {
  if (auto begun = context_.begin_call("is_done"); !begun) return tl::make_unexpected(begun.error());
  if (auto checked = check_mark("is_done", mark); !checked) return tl::make_unexpected(checked.error());
  const auto* const latest = static_cast<Record*>(mark->latest.get());
  return latest == nullptr || latest->done.load(std::memory_order_acquire);
}

void Gpu::wait_for(GpuQueue* queue) {
  const uint64_t enqueued = queue->enqueued.load(kRelaxed);
  queue->synchronizing.fetch_add(1, kRelaxed);
  progress_.wait_until([&] { return queue->finished.load(std::memory_order_acquire) >= enqueued; });
  queue->synchronizing.fetch_sub(1, kRelaxed);
}

Answer<void> Gpu::synchronize(GpuQueue* queue) {
  if (auto begun = context_.begin_call("synchronize"); !begun) return begun;
  wait_for(queue);
  return {};
}

Answer<void> Gpu::synchronize(GpuMark* mark) {
  if (auto begun = context_.begin_call("synchronize"); !begun) return begun;
  if (auto checked = check_mark("synchronize", mark); !checked) return checked;
  const auto* const latest = static_cast<Record*>(mark->latest.get());
  progress_.wait_until([&] { return latest == nullptr || latest->done.load(std::memory_order_acquire); });
  return {};
}

Answer<void> Gpu::synchronize_all() {
  if (auto begun = context_.begin_call("synchronize_all"); !begun) return begun;
  for (auto* queue = static_cast<GpuQueue*>(queues_.get()); queue != nullptr; queue = queue->older) {
    progress_.wait_until([&] { return queue->finished.load(std::memory_order_acquire) == queue->enqueued.load(kRelaxed); });
  }
  return {};
}

Answer<double> Gpu::seconds_between(GpuMark* from, GpuMark* to) {
  if (auto begun = context_.begin_call("seconds_between"); !begun) return tl::make_unexpected(begun.error());
  std::array<int64_t, 2> at_ns{};
  for (size_t i = 0; i < 2; ++i) {
    GpuMark* const mark = i == 0 ? from : to;
    if (auto checked = check_mark("seconds_between", mark); !checked) return tl::make_unexpected(checked.error());
    const auto* const latest = static_cast<Record*>(mark->latest.get());
    if (latest == nullptr || !latest->done.load(std::memory_order_acquire))
      return refuse(Why::invalid, fmt::format("{} was asked for the time between marks that are not done", context_.name()));
    at_ns[i] = latest->at_ns.load(kRelaxed);
  }
  return static_cast<double>(at_ns[1] - at_ns[0]) * 1e-9;
}

Answer<void> Gpu::set_capturing(GpuQueue* queue, bool capturing) {
  if (auto begun = context_.begin_call("set_capturing"); !begun) return begun;
  queue->capturing.store(capturing, kRelaxed);
  return {};
}

Answer<void> Gpu::begin_enqueue(const char* call, const GpuQueue* queue) {
  if (auto begun = context_.begin_call(call); !begun) return begun;
  if (queue->capturing.load(kRelaxed))
    return refuse(Why::capturing, fmt::format("{} was called on a queue of {} that records a graph", call, context_.name()));
  return {};
}

void Gpu::put(GpuQueue* queue, Way way, Work work) {
  const auto fits = [&] { return queue->outstanding() < options().queue_slots; };
  if (!fits()) context_.wait_alone(fits);
  queue->channel->put(*queue, connections_.of(queue->number, way), std::move(work));
}

Answer<void> Gpu::copy(GpuQueue* queue, const Copy& copy) {
  if (auto begun = begin_enqueue("copy", queue); !begun) return begun;
  if (copy.bytes == 0 || copy.rows == 0) return {};
  if (copy.rows > 1 && (copy.to_pitch < copy.bytes || copy.from_pitch < copy.bytes))
    return refuse(Why::invalid, fmt::format("a copy of {} rows of {} bytes has pitches of {} and {}, so its rows overlap",
                                            copy.rows, copy.bytes, copy.to_pitch, copy.from_pitch));
  if (copy.rows > 1 && std::max(copy.to_pitch, copy.from_pitch) > options().most_pitch)
    return refuse(Why::invalid, fmt::format("a copy has pitches of {} and {} bytes; {} has at most {}", copy.to_pitch,
                                            copy.from_pitch, context_.name(), options().most_pitch));
  const auto to = memory_.reach("to", copy.to, copy.bytes, copy.rows, copy.to_pitch);
  if (!to) return tl::make_unexpected(to.error());
  const auto from = memory_.reach("from", copy.from, copy.bytes, copy.rows, copy.from_pitch);
  if (!from) return tl::make_unexpected(from.error());
  if (copy.rows == 1 && *to < *from + copy.bytes && *from < *to + copy.bytes)
    return refuse(Why::invalid, fmt::format("a copy of {} bytes overlaps itself", copy.bytes));
  Region target;
  find_region(copy.to, target);
  if (target.read_only)
    return refuse(Why::invalid, fmt::format("a copy to {}, which was pinned for reading alone", fmt::ptr(copy.to)));
  Region source;
  find_region(copy.from, source);
  if (target.kind == Region::Kind::piece && target.gpu != this && (target.writers >> options().ordinal & 1) == 0)
    return refuse(Why::invalid, fmt::format("a copy to {}, which {} was not let write", fmt::ptr(copy.to), context_.name()));
  if (source.kind == Region::Kind::piece && source.gpu != this && (source.readers >> options().ordinal & 1) == 0)
    return refuse(Why::invalid, fmt::format("a copy from {}, which {} was not let read", fmt::ptr(copy.from), context_.name()));
  // Of a piece, too, since a peer may read it early.
  const bool is_seen = target.kind != Region::Kind::device;
  const RealCopy real_copy{*to, *from, copy.bytes, copy.rows, copy.to_pitch, copy.from_pitch, is_seen};
  put(queue, way_of(target, source, this), [real_copy, queue](Turn& turn) {
    if (!queue->skips()) turn.shadow.copy(real_copy);
  });
  // As CUDA's do: fully synchronous, whatever their name says. It keeps nobody else waiting.
  if (is_host(source.kind) && is_host(target.kind)) wait_for(queue);
  return {};
}

Answer<void> Gpu::words(GpuQueue* queue, std::span<const WordOperation> operations) {
  if (auto begun = begin_enqueue("words", queue); !begun) return begun;
  if (!options().waits_for_words)
    return refuse(Why::unsupported, fmt::format("{} has no stream memory operations", context_.name()));
  if (operations.size() > options().words_per_call)
    return refuse(Why::invalid, fmt::format("words was called with {} operations; {} takes at most {}", operations.size(),
                                            context_.name(), options().words_per_call));
  for (const WordOperation& operation : operations) {
    if (auto word = memory_.word_at(operation.word); !word) return tl::make_unexpected(word.error());
  }
  for (const WordOperation& operation : operations) {
    std::atomic<uint64_t>* const word = *memory_.word_at(operation.word);
    const uint64_t value = operation.value;
    if (operation.kind == WordOperation::Kind::write) {
      put(queue, Way::kernels_and_words, [word, value](Turn& turn) {
        turn.show();
        word->store(value, std::memory_order_release);
      });
    } else {
      put(queue, Way::kernels_and_words, [queue, word, value](Turn& turn) {
        turn.wait_until([&] { return has_come(*word, value); });
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
  put(queue, Way::kernels_and_words, [fresh](Turn& turn) {
    turn.show();
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
  put(queue, Way::kernels_and_words,
      [latest](Turn& turn) { turn.wait_until([&] { return latest->done.load(std::memory_order_acquire); }); });
  return {};
}

Answer<void> Gpu::load(size_t kernel) {
  if (auto begun = context_.begin_call("load"); !begun) return begun;
  if (progress_.loaded.add(kernel)) context_.wait_for_all();
  return {};
}

Answer<void> Gpu::launch(GpuQueue* queue, std::function<void()> kernel) {
  if (auto begun = begin_enqueue("launch", queue); !begun) return begun;
  put(queue, Way::kernels_and_words, [kernel = std::move(kernel)](Turn& turn) {
    turn.show();
    turn.leave();
    kernel();
  });
  return {};
}

Answer<void> Gpu::launch(GpuQueue* queue, size_t number, std::function<void()> kernel) {
  if (options().loads_lazily)
    if (auto loaded = load(number); !loaded) return loaded;
  return launch(queue, std::move(kernel));
}

}  // namespace fccl::core::simulated
