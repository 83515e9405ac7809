// Descriptors: finds descriptors that libfabric opens without FD_CLOEXEC, which a program started by this process would
// inherit.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fccl::core::ofi {

// Returns the descriptors of this process, in order.
std::vector<int> open_descriptors();

// Sets FD_CLOEXEC on sockets and epolls that are not among `before`. It also catches sockets that other threads open in
// between; these must want the same.
void close_new_on_exec(std::span<const int> before);

// A socket's address, as libfabric gives it.
using SocketName = std::vector<std::byte>;

// Returns the socket of this process that listens at `own`, or -1.
int listening_socket(const SocketName& own);

// Sets FD_CLOEXEC on sockets of connections that came to `own`, or go to one of `peers`, which are sorted; returns the former.
std::vector<int> close_connections_on_exec(const SocketName& own, std::span<const SocketName> peers);

}  // namespace fccl::core::ofi
