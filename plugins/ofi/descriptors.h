// Descriptors: those that libfabric opens without FD_CLOEXEC, which a program that this process starts would inherit.
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

// The one of this process that listens at `own`, or -1.
int listening_socket(const SocketName& own);

// FD_CLOEXEC for the sockets of connections that came to `own`, or go to one of `peers`, which are sorted; the former are
// returned.
std::vector<int> close_connections_on_exec(const SocketName& own, std::span<const SocketName> peers);

}  // namespace fccl::ofi
