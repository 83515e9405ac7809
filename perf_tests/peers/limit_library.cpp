// The limit as the measured library: the speed that memory allows if calls check nothing, choose nothing and never fail.
//
// A rank meets the others, copies or sums straight out of their buffers, and meets them again before its own may change. Data
// that fits into a slot needs no second meeting: a slot is written again two calls later, and its readers have by then been in
// the call between.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "library.h"
#include "peers/mapped_memory.h"
#include "run.h"

namespace fccl::perf {
namespace {

constexpr std::size_t kPiece = 64 << 10;  // a part of an AllReduce: small enough to stay in the cache until all ranks have it
// Number of polls of others' progress before a rank yields the processor to them.
constexpr int kLooks = 1 << 11;
constexpr int kLooksWhereCoresAreShared = 64;

struct Slot {
  static constexpr std::size_t kBytes = 4096;

  alignas(64) std::atomic<std::uint64_t> call;
  std::byte near[56];  // in the same cache line
  alignas(64) std::byte far[kBytes];

  std::byte* data(std::size_t bytes) { return bytes <= sizeof near ? near : far; }
};

// One rank's message to the others; only that rank writes it. It begins as zeros.
struct Seat {
  alignas(64) std::atomic<std::uint64_t> meetings;
  Slot slots[2];
};

// If the result replaces the input, or is read again, its lines are in the cache.
LoopKind through_caches(LoopKind kind) { return kind == LoopKind::streamed ? LoopKind::plain : kind; }

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class LimitLibrary : public Library {
 public:
  LimitLibrary(const Run& run, int thread, const MappedMemory& memory, const std::byte* own)
      : memory_(memory), loops_(run.loops), rank_(run.team.rank(thread)), ranks_(run.team.ranks()) {
    for (int rank = 0; rank < ranks_; ++rank) seats_.push_back(reinterpret_cast<Seat*>(memory.of(rank, own)));
    from_.resize(seats_.size());
    if (ranks_ > sysconf(_SC_NPROCESSORS_ONLN)) looks_ = kLooksWhereCoresAreShared;
  }

  Result<void> choose(const ElementType& type, const Operator&) override {
    element_bytes_ = type.bytes;
    return {};
  }

  Result<void> start(const Collective& collective, const Operation& operation) override {
    const auto* send = static_cast<const std::byte*>(operation.send.data);
    auto* recv = static_cast<std::byte*>(operation.recv.data);
    const std::size_t sent = operation.send.count * element_bytes_;
    const std::size_t received = operation.recv.count * element_bytes_;
    if (std::max(sent, received) <= Slot::kBytes) {
      publish(send, sent);
      if (collective.collective == fcclCollAllGather)
        gather_slots(send, recv, sent);
      else
        sum_slots(send, recv, sent, operation.recv.count);
      return {};
    }
    meet();
    if (collective.collective == fcclCollAllGather)
      gather(send, recv, sent);
    else if (collective.collective == fcclCollReduceScatter)
      reduce_scatter(send, recv, operation.recv.count);
    else
      all_reduce(send, recv, operation.recv.count);
    meet();
    return {};
  }

  Result<void> finish() override { return {}; }

 private:
  Seat& seat(int rank) const { return *seats_[static_cast<std::size_t>(rank)]; }
  // Returns the rank `step` places after this one, so that ranks do not all read from one at once.
  int other(int step) const { return (rank_ + step) % ranks_; }

  void await(const std::atomic<std::uint64_t>& word, std::uint64_t target) const {
    for (int looks = 0; word.load(std::memory_order_acquire) < target; ++looks) {
      if (looks < looks_)
        pause();
      else
        sched_yield();
    }
  }

  void meet() {
    seat(rank_).meetings.store(++meetings_, std::memory_order_release);
    for (int step = 1; step < ranks_; ++step) await(seat(other(step)).meetings, meetings_);
  }

  void publish(const std::byte* send, std::size_t bytes) {
    Slot& slot = seat(rank_).slots[++calls_ % 2];
    if (bytes > 0) std::memcpy(slot.data(bytes), send, bytes);
    slot.call.store(calls_, std::memory_order_release);
  }

  const std::byte* read_slot(int rank, std::size_t bytes) const {
    Slot& slot = seat(rank).slots[calls_ % 2];
    await(slot.call, calls_);
    return slot.data(bytes);
  }

  static void copy_own(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (to != from && bytes > 0) std::memcpy(to, from, bytes);
  }

  void gather_slots(const std::byte* send, std::byte* recv, std::size_t block) const {
    copy_own(recv + static_cast<std::size_t>(rank_) * block, send, block);
    for (int step = 1; step < ranks_; ++step)
      copy_own(recv + static_cast<std::size_t>(other(step)) * block, read_slot(other(step), block), block);
  }

  void sum_slots(const std::byte* send, std::byte* recv, std::size_t bytes, std::size_t count) {
    // For a ReduceScatter: skips the blocks of the ranks before this one.
    const std::size_t result = count * sizeof(float);
    const std::size_t skipped = result < bytes ? static_cast<std::size_t>(rank_) * result : 0;
    for (int rank = 0; rank < ranks_; ++rank)
      from_[static_cast<std::size_t>(rank)] = (rank == rank_ ? send : read_slot(rank, bytes)) + skipped;
    sum_as(LoopKind::plain, recv, from_.data(), ranks_, count);
  }

  void gather(const std::byte* send, std::byte* recv, std::size_t block) const {
    std::byte* own = recv + static_cast<std::size_t>(rank_) * block;
    const LoopKind kind = loops_.copies.of(block * seats_.size());
    if (send != own) copy_as(kind, own, send, block);
    for (int step = 1; step < ranks_; ++step) {
      const int rank = other(step);
      std::byte* to = recv + static_cast<std::size_t>(rank) * block;
      copy_as(kind, to, memory_.of(rank, send == own ? to : send), block);
    }
  }

  void reduce_scatter(const std::byte* send, std::byte* recv, std::size_t count) {
    const std::size_t block = count * sizeof(float);
    find_sources(send + static_cast<std::size_t>(rank_) * block);
    const LoopKind kind = loops_.sums.of(block * seats_.size());
    sum_as(recv == from_[static_cast<std::size_t>(rank_)] ? through_caches(kind) : kind, recv, from_.data(), ranks_, count);
  }

  // Each rank sums one part, piece by piece, and stores it into all results.
  void all_reduce(const std::byte* send, std::byte* recv, std::size_t count) {
    const std::size_t bytes = count * sizeof(float);
    const std::size_t lines = (bytes + 63) / 64;
    const std::size_t part = (lines + seats_.size() - 1) / seats_.size() * 64;
    const std::size_t end = std::min(bytes, (static_cast<std::size_t>(rank_) + 1) * part);
    const LoopKind chosen = loops_.copies.of(bytes);
    const LoopKind copies = recv == send ? through_caches(chosen) : chosen;
    // The sum is read again at once.
    const LoopKind sums = through_caches(loops_.sums.of(bytes));
    for (std::size_t at = static_cast<std::size_t>(rank_) * part; at < end; at += kPiece) {
      const std::size_t piece = std::min(kPiece, end - at);
      find_sources(send + at);
      sum_as(sums, recv + at, from_.data(), ranks_, piece / sizeof(float));
      for (int step = 1; step < ranks_; ++step) copy_as(copies, memory_.of(other(step), recv + at), recv + at, piece);
    }
  }

  void find_sources(const std::byte* own) {
    for (int rank = 0; rank < ranks_; ++rank) from_[static_cast<std::size_t>(rank)] = memory_.of(rank, own);
  }

  const MappedMemory& memory_;
  const LoopChoice& loops_;
  const int rank_;
  const int ranks_;
  int looks_ = kLooks;
  std::size_t element_bytes_ = 1;
  std::vector<Seat*> seats_;
  std::vector<const std::byte*> from_;  // sources of the current sum, by rank
  std::uint64_t meetings_ = 0;
  std::uint64_t calls_ = 0;  // number of calls that used slots
};

}  // namespace

Result<Limit> join_limit(const Run& run, int thread) {
  auto memory = std::make_unique<MappedMemory>(run.team, thread);
  const auto seat = memory->allocate(sizeof(Seat));
  if (!seat) return seat.error();
  auto library = std::make_unique<LimitLibrary>(run, thread, *memory, *seat);
  return Limit{std::move(memory), std::move(library)};
}

bool limit_has(const Collective& collective, const ElementType& type, const Operator& op) {
  if (collective.collective == fcclCollAllGather) return true;
  const bool sums = collective.collective == fcclCollReduceScatter || collective.collective == fcclCollAllReduce;
  return sums && type.datatype == fcclFloat32 && op.op == Op::sum && !op.scaled;
}

}  // namespace fccl::perf
