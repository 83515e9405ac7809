// Sockets: TCP and abstract unix addresses, never blocking, closed on exec, never raising SIGPIPE.
#pragma once

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace fccl::core {

// The address and port of a TCP socket.
struct Address {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};  // in network order; IPv4 uses the first four
  uint16_t port = 0;                // host order; 0 asks the system to choose

  bool operator==(const Address&) const = default;
};

// Returns a text such as "10.0.0.1:4242" or "[fd00::1]:4242".
std::string to_text(const Address& address);
// Returns a text without the port, such as "10.0.0.1" or "fd00::1".
std::string host_text(const Address& address);
// Parses a text of to_text; returns nothing for any other text.
std::optional<Address> address_from(std::string_view text);

// Listens on the first free port from the address's own to `last_port`, if that is given.
Result<Descriptor> listen_tcp(const Address& address, uint16_t last_port = 0);
// Holds such a port without listening, so that connecting to it is refused. listen_at_held then listens on it; only one
// listener may exist at a time. When it closes, the port stays held.
Result<Descriptor> hold_port(const Address& address, uint16_t last_port = 0);
Result<Descriptor> listen_at_held(const Address& address);
// Returns the address of a socket, with the port that the system chose.
Result<Address> address_of(int socket);

// Looks up a host name; returns no address for an unknown one. May ask a name server and block as long as the system does.
std::vector<Address> addresses_of_host(const std::string& name);
// Returns the local address, with port 0, from which packets to `there` would leave; nothing if no route leads there. Sends
// nothing.
std::optional<Address> local_address_towards(const Address& there);

// The outcome of connecting or accepting: a socket, or the errno of the failure.
struct Connection {
  Descriptor socket;
  int error = 0;
};

// Begins to connect. `await_connected` returns 0 once connected, else the errno of the failure, ETIMEDOUT after the deadline.
Connection begin_to_connect(const Address& address);
int await_connected(int socket, Deadline deadline);
// Begins to connect and waits for the outcome.
Connection connect_tcp(const Address& address, Deadline deadline);

// Gives the time limit of each attempt to connect, double that of the one before. If the listener's backlog is full, the kernel
// drops an attempt silently and would repeat it only after 1, 3 and 7 seconds.
class ConnectPatience {
 public:
  // The pause between two attempts.
  static constexpr std::chrono::milliseconds kPause{20};

  std::chrono::milliseconds next() { return std::exchange(next_, std::min(2 * next_, kMost)); }

 private:
  static constexpr std::chrono::milliseconds kMost{4000};
  std::chrono::milliseconds next_{250};
};

// Listens in the abstract unix namespace, under a name that the kernel chooses. The name is not in the file system, ends with
// the process, and is visible in this network namespace only.
Result<Descriptor> listen_local(int backlog);
Result<std::string> local_name(int socket);
// Listens under a given name; EADDRINUSE if another socket has it.
Connection listen_local_at(std::string_view name, int backlog);
// Connects to an abstract name; ECONNREFUSED if no listener has it. If the listener's backlog is full, this waits in line for
// `patience`, at least a millisecond, then fails with EAGAIN; a nonblocking socket could not wait.
Connection connect_local(std::string_view name, std::chrono::milliseconds patience);

// Returns the process that listened at the other end of a connection to an abstract name; 0 if the system does not tell.
int listening_process(int socket);

// Accepts one connection; EAGAIN if none is waiting.
Connection accept_one(int listener);

// The result of one read or write, which never waits; `error` is EAGAIN if nothing could be moved now.
struct Transfer {
  size_t bytes = 0;
  int error = 0;
  bool closed = false;  // the peer will send no more
  bool lost = false;    // the peer passed descriptors, but this process has no room for them
};

// The most descriptors that one message passes.
inline constexpr size_t kMostPassed = 2;

// Stores passed descriptors in `passed`, which has at most kMostPassed. One more than that never enters this process, because
// even closing a stranger's descriptor may block.
Transfer read_some(int socket, std::span<char> into, std::span<Descriptor> passed = {});
// Sends the descriptors `pass`, at most kMostPassed, with the first byte (unix sockets only).
Transfer write_some(int socket, std::string_view from, std::span<const int> pass = {});

// Ends the connection for every holder of the socket, including a forked child that would keep it open.
void shut(int socket);

// Polls until an entry is ready or the deadline passes; returns the number of ready entries.
int poll_until(std::span<pollfd> set, Deadline deadline);

}  // namespace fccl::core
