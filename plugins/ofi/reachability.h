// Reachability: asks the kernel if a TCP peer still listens, where the provider only says "try again".
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <span>

#include "os/descriptor.h"

namespace fccl::core::ofi {

// Connects to the peer's listener now and then, and drops the connection. Its owner waits for the peer; it never waits itself.
class Reachability {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `address` is a sockaddr.
  explicit Reachability(std::span<const std::byte> address);

  // Returns 0, or why the kernel cannot connect to the peer. A peer that is merely slow, or stopped, is reachable.
  int error_at(Time now);

 private:
  int attempt();
  int outcome();

  sockaddr_storage address_{};
  socklen_t bytes_ = 0;
  Descriptor socket_;
  Time next_;
};

}  // namespace fccl::core::ofi
