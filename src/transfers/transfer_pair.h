// TransferPair: one rank's side of the transfers between it and one other rank, whatever carries their bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/transfer.h"
#include "kernels/copy.h"

namespace fccl::core {

// A rank's transfer lane owns it; the one thread that has the lane's turn uses it. No function waits: each does what is
// possible now. The lane calls it a few times a turn, and never once a slice.
class TransferPair {
 public:
  // A notice of the peer, and the payload that came along with it. The payload stays until the notice is taken.
  struct Incoming {
    Notice notice;
    const std::byte* payload;
  };
  // Part of a message that went in one step.
  struct Moved {
    size_t bytes = 0;
    int slices = 0;
  };

  TransferPair() = default;
  virtual ~TransferPair() = default;
  TransferPair(const TransferPair&) = delete;
  TransferPair& operator=(const TransferPair&) = delete;

  // Returns the longest payload that travels with its notice.
  virtual size_t eager_bytes() const = 0;
  // Posts a notice with its payload; returns false if it is too long, or has no room now. The caller asks can_post first, since
  // only then false means that the payload cannot go along.
  virtual bool post_eager(const Notice& notice, const void* payload, size_t bytes) = 0;
  // Posts a notice without a payload, once there is room. `lent`: where the offered bytes are in this process, if the peer may
  // read them there, else null.
  virtual bool can_post() = 0;
  virtual void post(const Notice& notice, const void* lent) = 0;

  // Returns the peer's oldest notice that has not been taken.
  virtual std::optional<Incoming> next() = 0;
  // Returns where the payload of next() stays until its release, for a payload that comes before its receive. It may be copied
  // to `room`.
  virtual const std::byte* keep(const Incoming& next, std::vector<std::byte>& room) const = 0;
  virtual void take() = 0;
  // Frees the place of an eager payload, whose notice may have been taken.
  virtual void release(const Notice& notice) = 0;

  // Send and receive the next bytes of a granted message, as many slices as can move now, but not more than `most`. `put`:
  // writes slots that a peer on the host reads.
  virtual Moved send(const std::byte* source, size_t bytes, int most, CopyBytes put) = 0;
  virtual Moved receive(std::byte* target, size_t bytes, int most, CopyBytes copy) = 0;
};

}  // namespace fccl::core
