// Reads a peer's memory by process_vm_readv, and checks the peer's mark with each read.
#include "segment/peer_memory.h"

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
#include "os/clock.h"
#include "os/memory.h"

namespace fccl::core {

PeerMemory::PeerMemory(std::shared_ptr<Segment> segment, int rank, std::vector<int> pids)
    : segment_(std::move(segment)), rank_(rank), pids_(std::move(pids)), mark_(std::make_unique<uint64_t>()) {
  uint64_t& mark = *mark_;
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

void bring_in(const std::byte* begin, size_t bytes) {
  if (bytes == 0) return;
  const volatile std::byte* pages = begin;
  for (size_t i = 0; i < bytes; i += kPageBytes) (void)pages[i];
  (void)pages[bytes - 1];
}

}  // namespace fccl::core
