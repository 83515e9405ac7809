// Fabric: a network inside one process, whose endpoints are transports; kind or, by its Faults, worse than EFA.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "transports/faults.h"
#include "wire/transport.h"

namespace fccl::core::simulated {

// The limits of endpoints unless a test says otherwise.
inline TransportLimits usual_limits() {
  return {.rails = 1, .write_bytes = size_t{1} << 20, .message_bytes = 4096 + 64, .outstanding = 64};
}

struct FabricOptions {
  TransportLimits limits = usual_limits();
  Faults faults;
  // Nothing moves while the target does not poll.
  bool needs_polling = true;
  // With one thread, equal seeds and calls give equal histories; with several, equal draws.
  uint64_t seed = 1;
  // A misuse of the contract aborts with a sentence; if false it is an error of post or a failed operation.
  bool abort_on_misuse = true;
};

// How often each fault has happened, for tests of the faults. All rails count here, so the counters say nothing of order.
struct FaultCounts {
  using Count = std::atomic<uint64_t>;
  Count operations{0};
  // Cut into more than one fragment.
  Count split{0};
  Count duplicated_fragments{0};
  // A fragment between two of another operation.
  Count interleaved_fragments{0};
  // Posted later than one that came later.
  Count reordered_arrivals{0};
  Count reordered_ends{0};
  // A write's or message's end was polled first, or last.
  Count ended_first{0};
  Count arrived_first{0};
  // A rail that said full: for its window, by chance, for a peer's handshake.
  Count full_windows{0};
  Count full_by_chance{0};
  Count full_handshakes{0};
  // A message that waited for room at its peer.
  Count delayed_messages{0};
  Count refused_connects{0};
};

// How a lost link looks to the operations over it.
enum class Loss : uint8_t { none, reported, silent };

class FabricState;

// Owned by a test; its endpoints may outlive it. Any thread may call; each endpoint belongs to one thread at a time, as the
// contract of Transport says. Bytes are moved by the thread that posted them, under no lock that the target's poll takes, so
// that the thread sanitizer finds a target that reads before `arrived`.
class Fabric {
 public:
  explicit Fabric(const FabricOptions& options = {});

  // The next endpoint; they are numbered from 0.
  std::unique_ptr<Transport> open();
  // From now on operations from and to this rail of an endpoint fail, or are never heard of again. A destroyed endpoint's
  // links are lost with a report.
  void lose(int endpoint, int rail, Loss loss);
  const FaultCounts& counts() const;

 private:
  std::shared_ptr<FabricState> state_;
};

}  // namespace fccl::core::simulated
