// Tries the loops of the limit before the run measures.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "peers/limit_loops.h"

namespace fccl::perf {
namespace {

constexpr std::array<LoopKind, 3> kKinds = {LoopKind::plain, LoopKind::prefetched, LoopKind::streamed};
constexpr std::array<const char*, 3> kNames = {"plain", "prefetched", "streamed"};
constexpr std::array<std::size_t, 5> kTriedSizes = {16 << 20, 4 << 20, 1 << 20, 256 << 10, 64 << 10};
// Largest size of a buffer, and the bytes of one round.
constexpr std::size_t kSpan = 32 << 20;
constexpr int kRounds = 5;
// A gain below this may be chance.
constexpr double kGain = 0.95;

// Memory that is mapped like the calls' memory.
class Buffer {
 public:
  Buffer() : memory_(mmap(nullptr, kSpan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (is_there()) munmap(memory_, kSpan);
  }

  bool is_there() const { return memory_ != MAP_FAILED; }
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  void* memory_;
};

// Takes the bytes of a call and its offset in the buffers.
using Loop = std::function<void(LoopKind kind, std::size_t bytes, std::size_t begin)>;

// The kinds take turns. The fastest round of each counts, on the process where that is slowest. Calls use successive parts of
// `used` bytes, as those of the run do.
LoopKind fastest_kind(const Processes& processes, std::size_t bytes, std::size_t used, const Loop& loop) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> fastest(kKinds.size(), 1e9);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      processes.barrier();
      const auto began = Clock::now();
      for (std::size_t done = 0; done < kSpan; done += bytes) loop(kKinds[i], bytes, done % (used / bytes * bytes));
      fastest[i] = std::min(fastest[i], std::chrono::duration<double>(Clock::now() - began).count());
    }
  }
  std::vector<double> slowest(kKinds.size());
  const std::vector<double> all = processes.all_gather(fastest);
  for (std::size_t i = 0; i < all.size(); ++i) slowest[i % kKinds.size()] = std::max(slowest[i % kKinds.size()], all[i]);
  const auto best = std::ranges::min_element(slowest);
  return *best < kGain * slowest[0] ? kKinds[static_cast<std::size_t>(best - slowest.begin())] : LoopKind::plain;
}

// Returns the kind that is best for the largest calls, and the size from which on it is always the best.
SizedLoop choose(const Processes& processes, const Arguments& arguments, const Loop& loop) {
  SizedLoop chosen;
  for (const std::size_t bytes : kTriedSizes) {
    if (bytes > arguments.max_bytes) continue;
    const std::size_t used = arguments.rotates ? std::min(arguments.max_bytes, kSpan) : bytes;
    const LoopKind kind = fastest_kind(processes, bytes, used, loop);
    if (chosen.from > 0 && kind != chosen.kind) break;
    chosen = {kind, bytes};
    if (kind == LoopKind::plain) break;
  }
  return chosen;
}

std::string size_text(std::size_t bytes) {
  return bytes < 1 << 20 ? std::to_string(bytes >> 10) + "K" : std::to_string(bytes >> 20) + "M";
}

std::string text_of(const SizedLoop& loop) {
  if (loop.kind == LoopKind::plain) return kNames[0];
  return std::string("plain, from ").append(size_text(loop.from)) + " " + kNames[static_cast<std::size_t>(loop.kind)];
}

}  // namespace

std::string LoopChoice::text() const { return "copies " + text_of(copies) + "; sums " + text_of(sums); }

LoopChoice choose_loops(const Processes& processes, const Arguments& arguments) {
  const std::array<Buffer, 3> buffers;
  const bool has_memory = std::ranges::all_of(buffers, &Buffer::is_there);
  if (std::ranges::min(processes.all_gather(static_cast<int>(has_memory))) == 0) return {};
  const Loop copy = [&](LoopKind kind, std::size_t bytes, std::size_t begin) {
    copy_as(kind, buffers[0].at(begin), buffers[1].at(begin), bytes);
  };
  const Loop sum = [&](LoopKind kind, std::size_t bytes, std::size_t begin) {
    const std::array<const std::byte*, 2> from = {buffers[1].at(begin), buffers[2].at(begin)};
    sum_as(kind, buffers[0].at(begin), from.data(), 2, bytes / sizeof(float));
  };
  return {choose(processes, arguments, copy), choose(processes, arguments, sum)};
}

}  // namespace fccl::perf
