// How a program is altered.
#include "cuda/altered_gpu.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

namespace fccl::core::testing {

std::string name_of(Entry::Kind kind) {
  constexpr const char* kNames[] = {"record",     "await",       "copy in",           "copy out",
                                    "sum",        "write ready", "wait for finished", "write drained",
                                    "write done", "write taken", "wait for all_done", "wait for all_taken"};
  return kNames[static_cast<size_t>(kind)];
}

size_t next_in_order(const std::vector<Entry>& program, size_t at) {
  const Entry& entry = program[at];
  const auto follows = [&](const Entry& later) {
    const bool is_by_mark = entry.kind == Entry::Kind::record && later.kind == Entry::Kind::await;
    return later.queue.native == entry.queue.native || (is_by_mark && later.mark.native == entry.mark.native);
  };
  const auto next = std::find_if(program.begin() + static_cast<ptrdiff_t>(at) + 1, program.end(), follows);
  return static_cast<size_t>(next - program.begin());
}

namespace {

bool is_said_too_early(Entry::Kind kind) {
  return kind == Entry::Kind::ready || kind == Entry::Kind::done || kind == Entry::Kind::taken;
}

}  // namespace

Result<void> AlteredGpu::copy(Queue queue, const Copy& copy) {
  if (!collects()) return SimulatedGpu::copy(queue, copy);
  const bool is_in = place_of(copy.from) == MemoryPlace::this_device;
  collected_.push_back({is_in ? Entry::Kind::copy_in : Entry::Kind::copy_out, queue, {}, copy, {}});
  return {};
}

Result<void> AlteredGpu::reduce(Queue queue, const Reduction& reduction) {
  if (!collects()) return SimulatedGpu::reduce(queue, reduction);
  collected_.push_back({.kind = Entry::Kind::sum, .queue = queue, .mark = {}, .copy = {}, .word = {}, .reduction = reduction});
  collected_.back().sources.assign(reduction.sources.begin(), reduction.sources.end());
  collected_.back().factors.assign(reduction.factors.begin(), reduction.factors.end());
  return {};
}

// Each word of a lane has a line of its own, in the first page of its memory.
Result<void> AlteredGpu::words(Queue queue, std::span<const WordOperation> operations) {
  if (!collects()) return SimulatedGpu::words(queue, operations);
  using enum Entry::Kind;
  constexpr std::array kLines{ready, finished, drained, drained /* the scalar, no word */, done, taken, all_done, all_taken};
  for (const WordOperation& operation : operations) {
    const size_t line = reinterpret_cast<uintptr_t>(operation.word) % 4096 / 64;
    collected_.push_back({kLines.at(line), queue, {}, {}, operation});
  }
  return {};
}

Result<void> AlteredGpu::record(Queue queue, Mark mark) {
  if (!collects()) return SimulatedGpu::record(queue, mark);
  collected_.push_back({Entry::Kind::record, queue, mark, {}, {}});
  return {};
}

Result<void> AlteredGpu::await(Queue queue, Mark mark) {
  if (!collects()) return SimulatedGpu::await(queue, mark);
  collected_.push_back({Entry::Kind::await, queue, mark, {}, {}});
  return queue.native == user_.native ? enqueue_altered() : Result<void>{};
}

Result<void> AlteredGpu::enqueue_altered() {
  program_ = collected_;
  const size_t at = alteration_.entry;
  switch (alteration_.how) {
    case Alteration::How::none:
      break;
    case Alteration::How::drop:
      collected_.erase(collected_.begin() + static_cast<ptrdiff_t>(at));
      break;
    case Alteration::How::move: {
      const auto entry = collected_.begin() + static_cast<ptrdiff_t>(at);
      std::rotate(entry, entry + 1, collected_.begin() + static_cast<ptrdiff_t>(next_in_order(program_, at)) + 1);
      break;
    }
    case Alteration::How::miscount:
      // The GPU then writes a value that is too high, or awaits one that is too low.
      if (is_said_too_early(collected_[at].kind))
        ++collected_[at].word.value;
      else
        --collected_[at].word.value;
      collected_[at].copy.bytes -= collected_[at].copy.bytes > 0 ? 4 : 0;
      collected_[at].reduction.count -= collected_[at].reduction.count > 0 ? 1 : 0;
      break;
  }
  Result<void> all;
  for (const Entry& entry : collected_)
    if (all) all = enqueue(entry);
  collected_.clear();
  return all;
}

Result<void> AlteredGpu::enqueue(const Entry& entry) {
  switch (entry.kind) {
    case Entry::Kind::record:
      return SimulatedGpu::record(entry.queue, entry.mark);
    case Entry::Kind::await:
      return SimulatedGpu::await(entry.queue, entry.mark);
    case Entry::Kind::copy_in:
    case Entry::Kind::copy_out:
      if (const auto late = entry.kind == Entry::Kind::copy_in ? late_.in : late_.out; late.count() > 0)
        launch(entry.queue, [late] { std::this_thread::sleep_for(late); });
      return SimulatedGpu::copy(entry.queue, entry.copy);
    case Entry::Kind::sum: {
      if (late_.out.count() > 0) launch(entry.queue, [late = late_.out] { std::this_thread::sleep_for(late); });
      Reduction reduction = entry.reduction;
      reduction.sources = entry.sources;
      reduction.factors = entry.factors;
      return SimulatedGpu::reduce(entry.queue, reduction);
    }
    default:
      break;
  }
  return SimulatedGpu::words(entry.queue, std::span(&entry.word, 1));
}

}  // namespace fccl::core::testing
