// The ladder of failures: who may report what after how long, so that the error that all ranks see is of who knows best.
//
// Whoever waits for a rank reports it some steps of 0.3 s after its deadline has passed:
//
//   0 s    in a call a rank that waits for a rank of its own host    sees that rank's process and its last call
//          in init also a leader that waits for a rank of its host
//   0.3 s  in a call a rank that waits for another host's leader     a leader that is stopped takes its host's voice with it
//          in init a leader that waits for other leaders             a rank of its own host may keep another leader
//   0.6 s  in a call a rank that waits for another host's other rank its host knows whether it is stopped or waits in turn
//          in init, between hosts, a rank that waits for its leader  that may wait for another host
//
// A failure that has already come to be is reported before the deadline, but not before its cause may have come:
//
//   0.1 s  a peer's connection has ended             its process may be dying, which tells more
//   0.3 s  a rank of another host is gone            its part of the call may be on its way, and then nothing has failed
//   0.5 s  the root has been told why a rank gives up  it tells the others, whose first reason counts
#pragma once

#include <chrono>

namespace fccl {

// One step of the ladder, and how far behind its leader a rank is in init.
inline constexpr std::chrono::milliseconds kReportStep{300};
inline constexpr std::chrono::milliseconds kBehindLeader = 2 * kReportStep;

inline constexpr std::chrono::milliseconds kDyingTakes{100};
inline constexpr std::chrono::milliseconds kOnItsWay{300};
inline constexpr std::chrono::milliseconds kAnswerTakes{500};

// How often a wait asks whether something has happened that ends it.
inline constexpr std::chrono::milliseconds kLookInterval{20};

}  // namespace fccl
