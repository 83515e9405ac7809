// Lays out the segment, makes it as a memfd, and maps it once per process.
#include "segment/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/peer_status.h"
#include "base/rounding.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "os/per_process.h"
#include "os/signals_held_back.h"
#include "segment/lane_board.h"
#include "segment/peer_memory.h"
#include "segment/rank_state.h"
#include "segment/transfer_board.h"

namespace fccl::core {
namespace {

constexpr size_t kPairSlotsPerRank = 3ULL << 20;
// The payload between two ranks, in units of FCCL_MAILBOX_BYTES.
constexpr size_t kBoxOfTwo = 2;
// The payload of a host with more ranks than processors, in the same units, and its limit.
constexpr size_t kLongBox = 8;
constexpr size_t kLongestBox = 64 << 10;
// The most memory that init maps at once. Pages of a larger segment are mapped at first use, because init would spend too long
// if that many ranks mapped that many pages.
constexpr size_t kMappedAtOnce = 64ULL << 20;
// The slots for a rank's sends to all ranks of its host: this much for eager payloads, and as much for slices. Few ranks get
// twice as much for slices; very many ranks need more, since slots have a least size.
constexpr size_t kTransferSlotsPerRank = 1ULL << 20;
constexpr int kFewRanks = 4;  // two to this many ranks are few
constexpr size_t kLongestTransferSlot = 128 << 10;

// The fixed-size part of a rank: its state and its boards.
struct RankBoards {
  RankState state;
  std::array<LaneBoard, kLanes> lanes;
};

// Byte offsets of the parts of a segment.
struct Parts {
  size_t peer_statuses, reporters, awaited, lines, last_calls, boards, payloads, long_payloads, gather_slots, pair_slots,
      transfer_boards, eager_slots, transfer_slots, end;

  // The part that short calls use, which init maps. A rank's slots take memory only when a call first uses them, because most
  // communicators never use most of their slots.
  size_t used_at_once() const { return long_payloads; }

  explicit Parts(const SegmentShape& shape) {
    const size_t ranks = shape.ranks;
    peer_statuses = sizeof(FirstFailure);
    const auto of_everybody = [&](size_t bytes) {
      return rounded_up<size_t>(static_cast<size_t>(shape.everybody) * bytes, 64);
    };
    reporters = peer_statuses + of_everybody(sizeof(std::atomic<PeerStatus>));
    awaited = reporters + of_everybody(sizeof(std::atomic<int32_t>));
    lines = awaited + of_everybody(sizeof(std::atomic<int32_t>));
    last_calls = lines + of_everybody(sizeof(std::atomic<uint64_t>));
    boards = last_calls + of_everybody(sizeof(std::atomic<uint64_t>));
    payloads = boards + ranks * sizeof(RankBoards);
    long_payloads = payloads + ranks * kLanes * 2 * shape.box_bytes();
    gather_slots = long_payloads + ranks * kLanes * 2 * shape.long_box_bytes();
    pair_slots = gather_slots + ranks * kLanes * shape.gather_ring_bytes();
    transfer_boards = pair_slots + ranks * (ranks - 1) * shape.pair_ring_bytes();
    eager_slots = transfer_boards + ranks * ranks * sizeof(TransferBoard);
    transfer_slots = eager_slots + ranks * ranks * TransferBoard::kEagerSlots * shape.eager_bytes();
    end = transfer_slots + ranks * ranks * shape.transfer_ring_bytes();
    end = rounded_up<size_t>(end, kPageBytes);
  }
};

// The mappings of this process, by the identity of the memory.
struct Mappings {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Segment>> of;
};

constinit PerProcess<Mappings> mappings;

tl::unexpected<Error> memory_failure(const char* attempt, const SegmentShape& shape, const std::string& observed) {
  return fail(fcclSystemError,
              fmt::format("{} the {} bytes of memory that {} ranks of this host share (FCCL_SLOT_BYTES={}, "
                          "FCCL_MAILBOX_BYTES={}) failed: {}; free memory, raise the container's memory limit, or lower "
                          "FCCL_SLOT_BYTES",
                          attempt, shape.total_bytes(), shape.ranks, shape.slot_bytes, shape.mailbox_bytes, observed));
}

tl::unexpected<Error> system_failure(const char* attempt, const SegmentShape& shape) {
  return memory_failure(attempt, shape, std::strerror(errno));
}

// Checks before reserving: a memfd has no limit of its own, and reserving too much would make the kernel kill processes.
Result<void> check_available(const SegmentShape& shape) {
  if (shape.total_bytes() > longest_file())
    return memory_failure(
        "sizing", shape,
        fmt::format("this process may make files of {} bytes at most (ulimit -f), which counts here, too", longest_file()));
  const AvailableMemory available = available_memory();
  if (shape.total_bytes() <= available.bytes) return {};
  return memory_failure("reserving", shape,
                        fmt::format("only {} bytes are available, as {} says", available.bytes, available.limited_by));
}

}  // namespace

size_t SegmentShape::box_bytes() const { return ranks == 2 ? kBoxOfTwo * mailbox_bytes : mailbox_bytes; }

size_t SegmentShape::long_box_bytes() const { return std::max(box_bytes(), std::min(kLongBox * mailbox_bytes, kLongestBox)); }

size_t SegmentShape::pair_slot_bytes() const {
  if (ranks < 2) return slot_bytes;
  const size_t share = kPairSlotsPerRank / (kSlots * (static_cast<size_t>(ranks) - 1));
  return std::clamp<size_t>(share / 64 * 64, 64, slot_bytes);
}

size_t SegmentShape::eager_bytes() const {
  const size_t share = kTransferSlotsPerRank / (TransferBoard::kEagerSlots * static_cast<size_t>(ranks));
  return std::clamp<size_t>(share / 64 * 64, 64, mailbox_bytes);
}

size_t SegmentShape::transfer_slot_bytes() const {
  const size_t share = transfer_ring_bytes() / kSlots;
  return std::clamp<size_t>(share / 64 * 64, 64, std::min(slot_bytes, kLongestTransferSlot));
}

size_t SegmentShape::transfer_ring_bytes() const {
  const size_t of_rank = (ranks > 1 && ranks <= kFewRanks ? 2 : 1) * kTransferSlotsPerRank;
  return std::max<size_t>(of_rank / static_cast<size_t>(ranks) / 64 * 64, kSlots * 64);
}

size_t SegmentShape::total_bytes() const { return Parts(*this).end; }

Result<Descriptor> Segment::make(const SegmentShape& shape) {
  FCCL_TRY(check_available(shape));
  const auto bytes = static_cast<off_t>(shape.total_bytes());
  Descriptor memory(memfd_create("fccl", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return system_failure("opening", shape);
  if (ftruncate(memory.get(), bytes) != 0) return system_failure("sizing", shape);
  // A signal makes fallocate undo its work. A profiler's signal every millisecond would repeat this loop for ever.
  const SignalsHeldBack here;
  int reserved;
  do reserved = fallocate(memory.get(), 0, 0, static_cast<off_t>(Parts(shape).used_at_once()));
  while (reserved != 0 && errno == EINTR);
  if (reserved != 0) return system_failure("reserving", shape);
  if (fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return system_failure("sealing", shape);
  return memory;
}

Result<std::shared_ptr<Segment>> Segment::map(const Descriptor& memory, const SegmentShape& shape) {
  const size_t bytes = shape.total_bytes();
  struct stat identity{};
  if (fstat(memory.get(), &identity) != 0) return system_failure("looking at", shape);
  if (static_cast<size_t>(identity.st_size) != bytes)
    return fail(fcclInternalError,
                fmt::format("the shared memory of this host has {} bytes, this rank expected {}", identity.st_size, bytes));
  Mappings& all = mappings.get();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<Segment>& known = all.of[{identity.st_dev, identity.st_ino}];
  if (auto mapped = known.lock()) return mapped;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (address == MAP_FAILED) return system_failure("mapping", shape);
  if (const size_t used = Parts(shape).used_at_once(); used <= kMappedAtOnce)
    bring_in(static_cast<const std::byte*>(address), used);
  std::shared_ptr<Segment> mapped(new Segment(static_cast<std::byte*>(address), shape));
  known = mapped;
  std::erase_if(all.of, [](const auto& entry) { return entry.second.expired(); });
  return mapped;
}

Segment::~Segment() { munmap(memory_, shape_.total_bytes()); }

// Leaves the transfer boards, one per pair of ranks, as the zeros that the kernel provides.
void Segment::initialise(uint32_t first_sequence) {
  const Parts parts(shape_);
  new (memory_) FirstFailure;
  for (int rank = 0; rank < shape_.everybody; ++rank) {
    new (&peer_status(rank)) std::atomic<PeerStatus>{PeerStatus::present};
    new (&reporter_beyond(rank)) std::atomic<int32_t>{-1};
    new (&awaited_beyond(rank)) std::atomic<int32_t>{-1};
    new (&line_beyond(rank)) std::atomic<uint64_t>{0};
    new (&last_call_beyond(rank)) std::atomic<uint64_t>{UINT64_MAX};
  }
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    auto* boards = new (memory_ + parts.boards + rank * sizeof(RankBoards)) RankBoards;
    for (LaneBoard& board : boards->lanes)
      for (Box& box : board.boxes) box.word.store(uint64_t{first_sequence - 1} << 32, std::memory_order_relaxed);
  }
}

std::atomic<PeerStatus>& Segment::peer_status(int rank) const {
  return *at<std::atomic<PeerStatus>>(Parts(shape_).peer_statuses +
                                      static_cast<size_t>(rank) * sizeof(std::atomic<PeerStatus>));
}

std::atomic<int32_t>& Segment::reporter_beyond(int rank) const {
  return *at<std::atomic<int32_t>>(Parts(shape_).reporters + static_cast<size_t>(rank) * sizeof(std::atomic<int32_t>));
}

std::atomic<int32_t>& Segment::awaited_beyond(int rank) const {
  return *at<std::atomic<int32_t>>(Parts(shape_).awaited + static_cast<size_t>(rank) * sizeof(std::atomic<int32_t>));
}

std::atomic<uint64_t>& Segment::line_beyond(int rank) const {
  return *at<std::atomic<uint64_t>>(Parts(shape_).lines + static_cast<size_t>(rank) * sizeof(std::atomic<uint64_t>));
}

std::atomic<uint64_t>& Segment::last_call_beyond(int rank) const {
  return *at<std::atomic<uint64_t>>(Parts(shape_).last_calls + static_cast<size_t>(rank) * sizeof(std::atomic<uint64_t>));
}

RankState& Segment::state(int rank) const { return at<RankBoards>(Parts(shape_).boards + rank * sizeof(RankBoards))->state; }

LaneBoard& Segment::board(int rank, LaneId lane) const {
  return at<RankBoards>(Parts(shape_).boards + rank * sizeof(RankBoards))->lanes[lane];
}

std::byte* Segment::payload(int rank, LaneId lane, int parity) const {
  return memory_ + Parts(shape_).payloads + ((rank * kLanes + lane) * 2 + parity) * shape_.box_bytes();
}

std::byte* Segment::long_payload(int rank, LaneId lane, int parity) const {
  return memory_ + Parts(shape_).long_payloads + ((rank * kLanes + lane) * 2 + parity) * shape_.long_box_bytes();
}

std::byte* Segment::gather_ring(int rank, LaneId lane) const {
  return memory_ + Parts(shape_).gather_slots + static_cast<size_t>(rank * kLanes + lane) * shape_.gather_ring_bytes();
}

std::byte* Segment::pair_ring(int source, int destination) const {
  const int ranks = shape_.ranks;
  const int distance = (destination - source - 1 + ranks) % ranks;  // 0 .. ranks - 2
  return memory_ + Parts(shape_).pair_slots + (static_cast<size_t>(source) * (ranks - 1) + distance) * shape_.pair_ring_bytes();
}

TransferBoard& Segment::transfer_board(int source, int destination) const {
  return *at<TransferBoard>(Parts(shape_).transfer_boards + pair(source, destination) * sizeof(TransferBoard));
}

std::byte* Segment::eager_slot(int source, int destination, int number) const {
  const size_t slot = pair(source, destination) * TransferBoard::kEagerSlots + static_cast<size_t>(number);
  return memory_ + Parts(shape_).eager_slots + slot * shape_.eager_bytes();
}

std::byte* Segment::transfer_ring(int source, int destination) const {
  return memory_ + Parts(shape_).transfer_slots + pair(source, destination) * shape_.transfer_ring_bytes();
}

}  // namespace fccl::core
