// LandingSlots: the slots of a lane by which the GPUs of a host's ranks give each other bytes: its own, and those of its peers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arena/reservation.h"
#include "base/result.h"
#include "os/descriptor.h"

namespace fccl::core {

// What a rank tells its peers: where they find its slots.
struct LandingPlace {
  bool is_made = false;  // a rank without slots has none
  // In host memory: in an arena.
  ArenaName arena{};
  uint64_t offset = kNotInArena;
  // In a GPU's memory: under a random number, as no two processes choose.
  std::array<uint64_t, 2> memory{};
};

// Slots are used in turn, by the numbers of a lane's steps. A rank writes its own gather slots, and all peers read them. It
// has a ring of pair slots for each peer; the peer's GPU alone writes these, and its own reads them. One more ring has the
// rank's results, which its GPU writes and all peers read. A DeviceLane owns a landing, and destroys it when its queue is idle:
// no GPU of this process writes to the rank's own slots any more. A peer's GPU may still read them, after a failure; so their
// pages stay as long as a peer has them. Where slots lie, a maker decides: HostLanding or PeerLanding. Making one, reach and
// the destructor are set-up functions of the device.
class LandingSlots {
 public:
  static constexpr uint64_t kSlots = 4;
  // The steps for which a GPU fills its slots before it empties those of the first one. Fewer than there are slots, so that no
  // GPU waits for the slowest of its peers in each step.
  static constexpr uint64_t kAhead = kSlots / 2;
  // The most that the slots of a rank take, those for gathers and those for pairs together.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  // Says the use of slots: gather slots hold the bytes of one rank for all, pair slots those of one rank for another.
  enum class Slots : uint8_t { gather, pair };
  // Bytes of slots.
  struct Bytes {
    size_t gather = 0;
    size_t pair = 0;
  };

  virtual ~LandingSlots();
  LandingSlots(const LandingSlots&) = delete;
  LandingSlots& operator=(const LandingSlots&) = delete;

  // Returns those that the landings of this process have now.
  static Bytes of_process();

  virtual LandingPlace place() const = 0;
  // Returns a descriptor that other processes need to reach this rank's slots; none if they need none.
  virtual Result<Descriptor> lend() const { return Descriptor{}; }
  // Maps the slots of a peer, for this rank's GPU to read. Does not trust the peer. `lent`: the descriptor of a peer in
  // another process. Error: fcclSystemError, or the GPU's.
  virtual Result<void> reach(int peer, int pid, const LandingPlace& place, const Descriptor& lent) = 0;

  bool is_for_pairs() const { return kind_ == Slots::pair; }
  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(begins_.size()); }
  size_t slot_bytes() const { return bytes_ / kSlots / static_cast<size_t>(rings_); }
  // Return a rank's slot of a step, as its GPU finds it, and as this process does if slots lie in host memory. A peer's may
  // only be read.
  std::byte* device_slot(int rank, uint64_t step) const { return begins_[rank].on_gpu + step % kSlots * slot_bytes(); }
  // Returns the pair slot at rank `owner` that rank `source` fills; that of the owner itself is for its results.
  std::byte* device_pair_slot(int owner, int source, uint64_t step) const {
    return begins_[owner].on_gpu + (static_cast<uint64_t>(source) * kSlots + step % kSlots) * slot_bytes();
  }
  std::byte* device_result_slot(int rank, uint64_t step) const { return device_pair_slot(rank, rank, step); }
  bool is_on_host() const { return begins_[rank_].on_host != nullptr; }
  std::byte* slot(int rank, uint64_t step) const { return begins_[rank].on_host + step % kSlots * slot_bytes(); }

 protected:
  // The first byte of a rank's slots: its address on the host, or null, and for this rank's GPU.
  struct Begin {
    std::byte* on_host = nullptr;
    std::byte* on_gpu = nullptr;
  };

  // `bytes`: of all slots of a rank, a multiple of those of a ring. There is one ring of gather slots, or of pair slots one for
  // each rank.
  LandingSlots(size_t bytes, int rank, int ranks, Slots slots = Slots::gather);
  size_t bytes() const { return bytes_; }
  void set_begin(int rank, const Begin& begin) { begins_[rank] = begin; }

 private:
  size_t bytes_;
  Slots kind_;
  int rank_;
  int rings_;
  std::vector<Begin> begins_;  // by rank
};

}  // namespace fccl::core
