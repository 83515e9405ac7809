// Traffic: counts what the channels of this process have sent, for the cost of an init.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fccl::core {

// Sums since the process began. A value.
struct Traffic {
  uint64_t sockets = 0;   // ends of connections that were opened
  uint64_t messages = 0;  // messages said, without those of handshakes
  uint64_t bytes = 0;     // bytes sent in all

  friend Traffic operator-(const Traffic& now, const Traffic& before) {
    return {now.sockets - before.sockets, now.messages - before.messages, now.bytes - before.bytes};
  }
};

// Any thread may call these.
Traffic traffic_of_process();
void count_socket();
void count_message();
void count_sent(size_t bytes);

}  // namespace fccl::core
