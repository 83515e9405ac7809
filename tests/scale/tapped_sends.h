// TappedSends: counts the sealed messages that each thread of this process gives its sockets.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace fccl::core::testing {

struct Sends {
  uint64_t messages = 0;  // without those of handshakes
  uint64_t places = 0;    // those of them by which a root sends a collector on
  uint64_t bytes = 0;     // all
};

// Forgets what was sent so far.
void forget_sends();
// Returns what each thread has sent since then.
std::map<pid_t, Sends> sends_of_threads();

}  // namespace fccl::core::testing
