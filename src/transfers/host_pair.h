// HostPair: the transfers between two ranks of one host, through the segment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "segment/segment.h"
#include "segment/slot_ring.h"
#include "segment/transfer_board.h"
#include "transfers/transfer_pair.h"

namespace fccl::core {

// Reading a line takes it from the peer's cache, so this rank reads it only if the last value no longer suffices.
class HostPair final : public TransferPair {
 public:
  // Ranks are numbered within the host. A rank has a pair with itself, too.
  HostPair(std::shared_ptr<Segment> segment, int rank, int peer);

  size_t eager_bytes() const override { return eager_bytes_; }
  bool post_eager(const Notice& notice, const void* payload, size_t bytes) override;
  bool can_post() override;
  void post(const Notice& notice, const void* lent) override;

  std::optional<Incoming> next() override;
  const std::byte* keep(const Incoming& next, std::vector<std::byte>& room) const override;
  void take() override;
  void release(const Notice& notice) override;

  Moved send(const std::byte* source, size_t bytes, int most, CopyBytes put) override;
  Moved receive(std::byte* target, size_t bytes, int most, CopyBytes copy) override;

 private:
  // Counts the slices that have passed through a ring, and says where in it the next one lies.
  struct Progress {
    uint64_t slices = 0;
    SliceCursor at;
  };

  NoticeLine& next_line_out(const Notice& notice);
  void publish(NoticeLine& line);
  bool has_free_slot();

  std::shared_ptr<Segment> segment_;
  int rank_;
  int peer_;
  size_t eager_bytes_;
  TransferBoard* out_;
  TransferBoard* in_;
  uint64_t posted_ = 0, taken_ = 0;
  uint64_t taken_there_ = 0;  // as of this rank's last look; so is free_slots_
  Progress put_, drained_;
  unsigned free_slots_ = 0;  // one bit per slot
  std::array<uint64_t, TransferBoard::kEagerSlots> used_{}, released_{};
};

}  // namespace fccl::core
