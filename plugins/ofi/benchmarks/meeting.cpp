// Sockets to rank 0.
#include "meeting.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fccl::benchmarks {
namespace {

constexpr int kAttempts = 1000;
constexpr useconds_t kBetweenAttempts = 10000;

const char* text_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) give_up(variable);
  return text;
}

int number_of(const char* variable) { return std::atoi(text_of(variable)); }

sockaddr_in master() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(number_of("MASTER_PORT")));
  if (::inet_pton(AF_INET, text_of("MASTER_ADDR"), &address.sin_addr) != 1) give_up("MASTER_ADDR");
  return address;
}

Descriptor tcp_socket() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return socket;
}

void send_at_once(const Descriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Descriptor connect_to_master() {
  const sockaddr_in address = master();
  for (int i = 0; i < kAttempts; ++i) {
    Descriptor socket = tcp_socket();
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return socket;
    ::usleep(kBetweenAttempts);
  }
  give_up("connecting to MASTER_ADDR");
}

}  // namespace

void give_up(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, errno != 0 ? std::strerror(errno) : "is not set");
  std::exit(1);
}

void write_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t moved = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (moved <= 0) give_up("writing to another rank");
    bytes = bytes.subspan(static_cast<size_t>(moved));
  }
}

void read_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t moved = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (moved <= 0) give_up("reading from another rank");
    bytes = bytes.subspan(static_cast<size_t>(moved));
  }
}

Meeting::Meeting()
    : rank_(number_of("RANK")),
      ranks_(number_of("WORLD_SIZE")),
      local_rank_(number_of("LOCAL_RANK")),
      local_ranks_(number_of("LOCAL_WORLD_SIZE")) {
  if (rank_ != 0) {
    sockets_.push_back(connect_to_master());
    send_at_once(sockets_[0]);
    write_all(sockets_[0].get(), std::as_bytes(std::span(&rank_, 1)));
    return;
  }
  const sockaddr_in address = master();
  const Descriptor listener = tcp_socket();
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), ranks_) != 0)
    give_up("listening on MASTER_ADDR");
  sockets_.resize(static_cast<size_t>(ranks_));
  for (int i = 1; i < ranks_; ++i) {
    Descriptor socket(::accept(listener.get(), nullptr, nullptr));
    send_at_once(socket);
    int rank = 0;
    read_all(socket.get(), std::as_writable_bytes(std::span(&rank, 1)));
    sockets_[static_cast<size_t>(rank)] = std::move(socket);
  }
}

void Meeting::all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (rank_ != 0) {
    write_all(sockets_[0].get(), mine);
    return read_all(sockets_[0].get(), all);
  }
  std::ranges::copy(mine, all.begin());
  for (size_t i = 1; i < sockets_.size(); ++i) read_all(sockets_[i].get(), all.subspan(i * mine.size(), mine.size()));
  for (size_t i = 1; i < sockets_.size(); ++i) write_all(sockets_[i].get(), all);
}

}  // namespace fccl::benchmarks
