// Reading a peer's memory by process_vm_readv.
#include "node/peer_memory.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/uio.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "kernels/copy.h"
#include "system/clock.h"
#include "system/memory.h"

namespace fccl {

PeerMemory::PeerMemory(std::shared_ptr<Segment> segment, int rank, std::vector<int> pids)
    : segment_(std::move(segment)), rank_(rank), pids_(std::move(pids)), mine_(std::make_unique_for_overwrite<Marked>()) {
  uint64_t& mark = mine_->mark;
  check(getrandom(&mark, sizeof mark, 0) == sizeof mark, "the kernel gives a few random bytes");
  segment_->state(rank_).set_mark({reinterpret_cast<uintptr_t>(&mark), mark});
}

Result<void> PeerMemory::reach_all() {
  for (size_t i = 0; i < pids_.size(); ++i) {
    const int peer = static_cast<int>(i);
    marks_.push_back(segment_->state(peer).get_mark());
    errno = 0;
    if (!read(peer, nullptr, nullptr, 0))
      return fail(fcclSystemError,
                  fmt::format("rank {} cannot read the memory of rank {} (pid {}) by process_vm_readv: {}", rank_, peer,
                              pids_[i], errno == 0 ? "its mark is not there" : std::strerror(errno)));
  }
  reaches_all_ = true;
  return {};
}

bool PeerMemory::read(int peer, void* target, const void* source, size_t bytes) const {
  const MemoryMark& mark = marks_[peer];
  uint64_t seen = 0;
  const iovec local[] = {{target, bytes}, {&seen, sizeof seen}};
  const iovec remote[] = {{const_cast<void*>(source), bytes}, {std::bit_cast<void*>(mark.address), sizeof seen}};
  const ssize_t got = process_vm_readv(pids_[peer], local, 2, remote, 2, 0);
  return got >= 0 && static_cast<size_t>(got) == bytes + sizeof seen && seen == mark.value;
}

int PeerMemory::samples_in_slots() const {
  return static_cast<int>(std::min<size_t>(2 * (segment_->shape().transfer_slot_bytes() / kSampleBytes), kSamples));
}

std::byte* PeerMemory::slot_sample(int source, int destination, int i) const {
  return segment_->transfer_slot(source, destination, i % 2) + static_cast<size_t>(i / 2) * kSampleBytes;
}

void PeerMemory::lay_samples() {
  const int ranks = segment_->shape().ranks;
  mine_->samples.fill(std::byte{1});
  for (int i = 0; i < samples_in_slots(); ++i)
    copy_bytes(slot_sample(rank_, (rank_ + ranks - 1) % ranks, i), mine_->samples.data(), kSampleBytes);
}

std::optional<PeerMemory::Cost> PeerMemory::measure() const {
  const int peer = (rank_ + 1) % segment_->shape().ranks;
  const auto* there = std::bit_cast<const std::byte*>(marks_[peer].address) + offsetof(Marked, samples);
  std::vector<std::byte> target(kSampleBytes);
  Cost least{std::chrono::nanoseconds::max(), std::chrono::nanoseconds::max()};
  for (int i = 0; i < samples_in_slots(); ++i) {
    const std::byte* slot = slot_sample(peer, rank_, i);
    bring_in(slot, kSampleBytes);
    const Clock::time_point begin = Clock::now();
    copy_bytes(target.data(), slot, kSampleBytes);
    const Clock::time_point copied = Clock::now();
    if (!read(peer, target.data(), there + static_cast<size_t>(i) * kSampleBytes, kSampleBytes)) return std::nullopt;
    least = {std::min(least.of_read, Clock::now() - copied), std::min(least.of_copy, copied - begin)};
  }
  return samples_in_slots() > 0 ? std::optional(least) : std::nullopt;
}

void bring_in(const std::byte* begin, size_t bytes) {
  if (bytes == 0) return;
  const volatile std::byte* pages = begin;
  for (size_t i = 0; i < bytes; i += kPageBytes) (void)pages[i];
  (void)pages[bytes - 1];
}

}  // namespace fccl
