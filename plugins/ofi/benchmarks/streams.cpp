// Connecting, and moving both ways at once.
#include "streams.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace fccl::benchmarks {
namespace {

Descriptor listener_on(const std::string& nic) {
  Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, nic.c_str(), IFNAMSIZ - 1);
  if (::ioctl(listener.get(), SIOCGIFADDR, &request) != 0) give_up(nic.c_str());
  if (::bind(listener.get(), &request.ifr_addr, sizeof(request.ifr_addr)) != 0 || ::listen(listener.get(), 1) != 0)
    give_up("listening");
  return listener;
}

sockaddr_in address_of(const Descriptor& listener) {
  sockaddr_in address{};
  socklen_t bytes = sizeof(address);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
  return address;
}

struct Way {
  int socket = -1;
  const std::byte* out = nullptr;
  std::byte* in = nullptr;
  size_t to_send = 0, to_receive = 0;

  short wants() const { return static_cast<short>((to_send > 0 ? POLLOUT : 0) | (to_receive > 0 ? POLLIN : 0)); }
  void move() {
    if (const ssize_t sent = to_send > 0 ? ::send(socket, out, to_send, MSG_NOSIGNAL) : 0; sent > 0) {
      out += sent;
      to_send -= static_cast<size_t>(sent);
    }
    if (const ssize_t received = to_receive > 0 ? ::recv(socket, in, to_receive, 0) : 0; received > 0) {
      in += received;
      to_receive -= static_cast<size_t>(received);
    }
  }
};

}  // namespace

Streams::Streams(Meeting& meeting, const std::vector<std::string>& nics) {
  const int peer = (meeting.rank() + meeting.local_ranks()) % meeting.ranks();
  for (const std::string& nic : nics) {
    const Descriptor listener = listener_on(nic);
    const sockaddr_in address = meeting.all_gather(address_of(listener))[static_cast<size_t>(peer)];
    Descriptor socket;
    if (meeting.host() == 0) {
      socket = Descriptor(::accept(listener.get(), nullptr, nullptr));
    } else {
      socket = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) give_up("connecting");
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    sockets_.push_back(std::move(socket));
  }
}

void Streams::exchange(const std::byte* out, std::byte* in, size_t bytes) {
  const size_t piece = (bytes + sockets_.size() - 1) / sockets_.size();
  std::vector<Way> ways;
  for (size_t i = 0; i < sockets_.size(); ++i) {
    const size_t begin = std::min(i * piece, bytes), length = std::min(piece, bytes - begin);
    ways.push_back({sockets_[i].get(), out + begin, in + begin, length, length});
  }
  std::vector<pollfd> set(ways.size());
  for (;;) {
    bool done = true;
    for (size_t i = 0; i < ways.size(); ++i) {
      ways[i].move();
      set[i] = {ways[i].socket, ways[i].wants(), 0};
      done &= set[i].events == 0;
    }
    if (done) return;
    ::poll(set.data(), set.size(), -1);
  }
}

}  // namespace fccl::benchmarks
