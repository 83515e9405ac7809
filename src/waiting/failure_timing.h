// Failure timing: a ladder of delays for failure reports. The best informed rank reports first, so all ranks see its error.
//
// A rank that waits for another rank reports it this long after the deadline; the right column gives the reason:
//
//   0 s    in a call: a rank that waits for a rank of its own host    it sees that rank's process and last call
//          in init: also a leader that waits for a rank of its host
//   0.3 s  in a call: a rank that waits for another host's leader     a stopped leader cannot report for its host
//          in init: a leader that waits for other leaders             the other leader may wait for a rank of its own host
//   0.6 s  in a call: a rank that waits for another host's non-leader that host knows if it is stopped or waits in turn
//          in init, between hosts: a rank that waits for its leader   the leader may wait for another host
//
// A failure that has already happened is reported before the deadline, but only after its cause had time to arrive:
//
//   0.1 s  a peer's connection has ended        the peer's process may be dying, which is a better cause
//   0.3 s  a rank of another host is gone       its data may still be on the way; if it arrives, nothing has failed
//   0.5 s  a rank gives up and tells the root   the root answers with the first reason that it was told
#pragma once

#include <chrono>

namespace fccl::core {

// One step between reporters, and the delay of a rank behind its leader in init.
inline constexpr std::chrono::milliseconds kReportStep{300};
inline constexpr std::chrono::milliseconds kBehindLeader = 2 * kReportStep;

inline constexpr std::chrono::milliseconds kDeathDelay{100};
inline constexpr std::chrono::milliseconds kArrivalDelay{300};
inline constexpr std::chrono::milliseconds kAnswerDelay{500};

// The interval at which a wait checks for an event that ends it.
inline constexpr std::chrono::milliseconds kLookInterval{20};

}  // namespace fccl::core
