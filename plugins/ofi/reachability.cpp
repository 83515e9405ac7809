// Connects without waiting, and keeps the kernel's answer.
#include "ofi/reachability.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fccl::core::ofi {
namespace {

// A slow peer is not disturbed more often than this.
constexpr std::chrono::seconds kBetweenAttempts{1};

}  // namespace

Reachability::Reachability(std::span<const std::byte> address)
    : bytes_(static_cast<socklen_t>(std::min(address.size(), sizeof(address_)))) {
  std::memcpy(&address_, address.data(), bytes_);
}

int Reachability::error_at(Time now) {
  if (socket_) return outcome();
  if (now < next_) return 0;
  next_ = now + kBetweenAttempts;
  return attempt();
}

int Reachability::attempt() {
  socket_ = Descriptor(::socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // Without a socket this says nothing about the peer.
  if (!socket_) return 0;
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address_), bytes_) == 0 || errno == EINPROGRESS) return 0;
  const int error = errno;
  socket_.close();
  return error;
}

int Reachability::outcome() {
  pollfd waiting{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&waiting, 1, 0) <= 0) return 0;
  int error = 0;
  socklen_t bytes = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  socket_.close();
  return error;
}

}  // namespace fccl::core::ofi
