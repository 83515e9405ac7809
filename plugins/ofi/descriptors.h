// Descriptors: what libfabric opens without FD_CLOEXEC, and what a program that this process starts would inherit.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fccl::ofi {

// Those of this process, in order.
std::vector<int> open_descriptors();

// Sockets and epolls that are not among `before` get FD_CLOEXEC. Other threads that open some in between must want the same.
void close_new_on_exec(std::span<const int> before);

// A socket's address, as libfabric gives it.
using SocketName = std::vector<std::byte>;

// The same for the sockets of connections that came to `own`, or go to one of `peers`.
void close_connections_on_exec(const SocketName& own, std::span<const SocketName> peers);

}  // namespace fccl::ofi
