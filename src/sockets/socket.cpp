// Wraps the socket calls of the system, so that none blocks beyond its deadline.
#include "sockets/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <system_error>

#include "os/error_text.h"

namespace fccl::core {
namespace {

constexpr int kSocketFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;

struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SystemAddress to_system(const Address& address) {
  SystemAddress system;
  if (address.v6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(address.port);
    std::memcpy(&in6.sin6_addr, address.bytes.data(), 16);
    std::memcpy(&system.storage, &in6, sizeof(in6));
    system.size = sizeof(in6);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.bytes.data(), 4);
    std::memcpy(&system.storage, &in, sizeof(in));
    system.size = sizeof(in);
  }
  return system;
}

// An abstract address is a zero byte, then the name without a terminator. If the name is empty, the kernel chooses one on bind.
SystemAddress to_system(std::string_view local_name) {
  SystemAddress system;
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  system.size = sizeof(sa_family_t);
  if (!local_name.empty()) {
    local_name = local_name.substr(0, sizeof(un.sun_path) - 1);
    std::memcpy(un.sun_path + 1, local_name.data(), local_name.size());
    system.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + local_name.size());
  }
  std::memcpy(&system.storage, &un, sizeof(un));
  return system;
}

Address from_system(const sockaddr_storage& storage) {
  Address address;
  address.v6 = storage.ss_family == AF_INET6;
  if (address.v6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &storage, sizeof(in6));
    std::memcpy(address.bytes.data(), &in6.sin6_addr, 16);
    address.port = ntohs(in6.sin6_port);
  } else {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof(in));
    std::memcpy(address.bytes.data(), &in.sin_addr, 4);
    address.port = ntohs(in.sin_port);
  }
  return address;
}

void send_at_once(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Result<Descriptor> made(Connection socket, const char* attempted, const std::string& where) {
  if (socket.socket) return std::move(socket.socket);
  return fail(system_error(socket.error), fmt::format("cannot {} {}: {}", attempted, where, error_text(socket.error)));
}

// `option` is the socket option under which the port is shared; 0: not shared.
Connection bind_to(int family, SystemAddress where, int option) {
  Descriptor socket(::socket(family, SOCK_STREAM | kSocketFlags, 0));
  if (!socket) return {{}, errno};
  // Accepted sockets inherit this option.
  if (family != AF_UNIX) send_at_once(socket.get());
  const int on = 1;
  if (option != 0) ::setsockopt(socket.get(), SOL_SOCKET, option, &on, sizeof(on));
  if (::bind(socket.get(), where.get(), where.size) != 0) return {{}, errno};
  return {std::move(socket), 0};
}

Connection listen_on(int family, SystemAddress where, int backlog, int option) {
  Connection socket = bind_to(family, where, option);
  if (socket.socket && ::listen(socket.socket.get(), backlog) != 0) return {{}, errno};
  return socket;
}

// Tries one port after the other until one is free or another error occurs.
template <class Attempt>
Connection at_first_free_port(Address& address, uint16_t last_port, const Attempt& attempt) {
  while (true) {
    Connection socket = attempt(address.v6 ? AF_INET6 : AF_INET, to_system(address));
    if (socket.error != EADDRINUSE || address.port >= last_port) return socket;
    ++address.port;
  }
}

}  // namespace

std::string host_text(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  ::inet_ntop(address.v6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof(text));
  return text;
}

std::string to_text(const Address& address) {
  const std::string host = host_text(address);
  return address.v6 ? fmt::format("[{}]:{}", host, address.port) : fmt::format("{}:{}", host, address.port);
}

std::optional<Address> address_from(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  Address address;
  address.v6 = host.starts_with('[') && host.ends_with(']');
  if (address.v6) host = host.substr(1, host.size() - 2);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc{} ||
      ::inet_pton(address.v6 ? AF_INET6 : AF_INET, std::string(host).c_str(), address.bytes.data()) != 1)
    return std::nullopt;
  // Each address has one spelling, with nothing before or after it.
  if (to_text(address) != text) return std::nullopt;
  return address;
}

// Sets SO_REUSEADDR, because connections of an earlier listener may still be closing on the port.
Result<Descriptor> listen_tcp(const Address& address, uint16_t last_port) {
  Address at = address;
  auto socket = at_first_free_port(
      at, last_port, [](int family, const SystemAddress& where) { return listen_on(family, where, SOMAXCONN, SO_REUSEADDR); });
  return made(std::move(socket), "listen on", to_text(at));
}

// Binds a free port without sharing it, and then lets listen_at_held share it.
Result<Descriptor> hold_port(const Address& address, uint16_t last_port) {
  Address at = address;
  auto socket =
      at_first_free_port(at, last_port, [](int family, const SystemAddress& where) { return bind_to(family, where, 0); });
  const int on = 1;
  if (socket.socket && ::setsockopt(socket.socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) socket = {{}, errno};
  return made(std::move(socket), "keep a port of", to_text(at));
}

Result<Descriptor> listen_at_held(const Address& address) {
  return made(listen_on(address.v6 ? AF_INET6 : AF_INET, to_system(address), SOMAXCONN, SO_REUSEPORT), "listen on",
              to_text(address));
}

Result<Address> address_of(int socket) {
  SystemAddress system;
  if (::getsockname(socket, system.get(), &system.size) != 0)
    return fail(fcclSystemError, fmt::format("cannot read the address of a socket: {}", error_text(errno)));
  return from_system(system.storage);
}

std::vector<Address> addresses_of_host(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &first) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> entries(first, ::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    sockaddr_storage storage{};
    std::memcpy(&storage, entry->ai_addr, std::min<size_t>(entry->ai_addrlen, sizeof(storage)));
    addresses.push_back(from_system(storage));
  }
  return addresses;
}

std::optional<Address> local_address_towards(const Address& there) {
  const Descriptor socket(::socket(there.v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | kSocketFlags, 0));
  SystemAddress system = to_system(there);
  if (!socket || ::connect(socket.get(), system.get(), system.size) != 0) return std::nullopt;
  Result<Address> own = address_of(socket.get());
  if (!own) return std::nullopt;
  own->port = 0;
  return *own;
}

// connect(2) continues in the background if it cannot finish at once, and also after EINTR.
Connection begin_to_connect(const Address& address) {
  Descriptor socket(::socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | kSocketFlags, 0));
  if (!socket) return {{}, errno};
  send_at_once(socket.get());
  SystemAddress system = to_system(address);
  if (::connect(socket.get(), system.get(), system.size) != 0 && errno != EINPROGRESS && errno != EINTR) return {{}, errno};
  return {std::move(socket), 0};
}

int await_connected(int socket, Deadline deadline) {
  pollfd waiting{socket, POLLOUT, 0};
  if (poll_until({&waiting, 1}, deadline) == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

Connection connect_tcp(const Address& address, Deadline deadline) {
  Connection connection = begin_to_connect(address);
  if (!connection.socket) return connection;
  if (const int error = await_connected(connection.socket.get(), deadline); error != 0) return {{}, error};
  return connection;
}

Result<Descriptor> listen_local(int backlog) {
  return made(listen_on(AF_UNIX, to_system(std::string_view{}), backlog, 0), "listen on", "an abstract unix address");
}

Result<std::string> local_name(int socket) {
  SystemAddress system;
  if (::getsockname(socket, system.get(), &system.size) != 0)
    return fail(fcclSystemError, fmt::format("cannot read the name of a unix socket: {}", error_text(errno)));
  const size_t begin = offsetof(sockaddr_un, sun_path) + 1;
  if (system.size <= begin) return fail(fcclSystemError, "a unix socket that should listen has no name");
  return std::string(reinterpret_cast<const char*>(&system.storage) + begin, system.size - begin);
}

Connection listen_local_at(std::string_view name, int backlog) { return listen_on(AF_UNIX, to_system(name), backlog, 0); }

Connection connect_local(std::string_view name, std::chrono::milliseconds patience) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return {{}, errno};
  const auto ms = std::max<std::chrono::milliseconds::rep>(patience.count(), 1);
  const timeval limit{ms / 1000, ms % 1000 * 1000};
  SystemAddress system = to_system(name);
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0 ||
      ::connect(socket.get(), system.get(), system.size) != 0 || ::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0)
    return {{}, errno == EINTR ? EAGAIN : errno};
  return {std::move(socket), 0};
}

int listening_process(int socket) {
  ucred listener{};
  socklen_t size = sizeof(listener);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0 ? listener.pid : 0;
}

Connection accept_one(int listener) {
  while (true) {
    Descriptor socket(::accept4(listener, nullptr, nullptr, kSocketFlags));
    if (socket) return {std::move(socket), 0};
    // ECONNABORTED and EPROTO concern one connection, not the listener.
    if (errno != ECONNABORTED && errno != EPROTO && errno != EINTR) return {{}, errno};
  }
}

Transfer read_some(int socket, std::span<char> into, std::span<Descriptor> passed) {
  iovec part{into.data(), into.size()};
  alignas(cmsghdr) char control[CMSG_LEN(kMostPassed * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!passed.empty()) {
    message.msg_control = control;
    // The size is CMSG_LEN's, not CMSG_SPACE's, whose padding has room for one more descriptor.
    message.msg_controllen = CMSG_LEN(passed.size() * sizeof(int));
  }
  ssize_t got;
  do got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return {0, errno, false};
  size_t taken = 0;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr; entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    for (; taken < passed.size() && CMSG_LEN((taken + 1) * sizeof(int)) <= entry->cmsg_len; ++taken) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(entry) + taken * sizeof number, sizeof number);
      passed[taken] = Descriptor(number);
    }
  }
  const bool lost = taken < passed.size() && (message.msg_flags & MSG_CTRUNC) != 0;
  return {static_cast<size_t>(got), 0, got == 0, lost};
}

Transfer write_some(int socket, std::string_view from, std::span<const int> pass) {
  iovec part{const_cast<char*>(from.data()), from.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPassed * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!pass.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(pass.size_bytes());
    cmsghdr* entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(pass.size_bytes());
    std::memcpy(CMSG_DATA(entry), pass.data(), pass.size_bytes());
  }
  ssize_t put;
  do put = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (put < 0 && errno == EINTR);
  if (put < 0) return {0, errno, false};
  return {static_cast<size_t>(put), 0, false};
}

void shut(int socket) { ::shutdown(socket, SHUT_RDWR); }

int poll_until(std::span<pollfd> set, Deadline deadline) {
  while (true) {
    const int ready = ::poll(set.data(), set.size(), deadline.remaining_ms());
    if (ready >= 0) return ready;
    if (errno == EINTR && !deadline.passed()) continue;
    for (pollfd& entry : set) entry.revents = 0;
    if (errno == EINTR) return 0;
    // ENOMEM: the kernel lacks memory for a moment.
    ::poll(nullptr, 0, 1);
    if (deadline.passed()) return 0;
  }
}

}  // namespace fccl::core
