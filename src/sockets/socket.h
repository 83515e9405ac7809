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
#include "system/clock.h"
#include "system/descriptor.h"

namespace fccl {

// Where a TCP socket is.
struct Address {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};  // the first four where it is IPv4; network order
  uint16_t port = 0;                // host order; 0 asks the system to choose

  bool operator==(const Address&) const = default;
};

// "10.0.0.1:4242", "[fd00::1]:4242".
std::string to_text(const Address& address);
// The same without the port: "10.0.0.1", "fd00::1".
std::string host_text(const Address& address);
// The same, read; nothing for any other text.
std::optional<Address> address_from(std::string_view text);

// On the first port that is free from the address's own to `last_port`, where that is given.
Result<Descriptor> listen_tcp(const Address& address, uint16_t last_port = 0);
// Keeps such a port without listening at it: whoever connects is refused, also while this process listens there no more, until
// listen_at_held does. One listener at a time.
Result<Descriptor> hold_port(const Address& address, uint16_t last_port = 0);
Result<Descriptor> listen_at_held(const Address& address);
// Where a socket that asked for port 0 is.
Result<Address> address_of(int socket);

// What the system knows by this name; none where it knows nothing. May ask a name server, for as long as the system lets it.
std::vector<Address> addresses_of_host(const std::string& name);
// The address of this host, with port 0, from which packets would go to another one; nothing where no route leads there.
// Nothing is sent.
std::optional<Address> local_address_towards(const Address& there);

// An attempt to connect or accept: a socket, or the errno that says why there is none.
struct Connection {
  Descriptor socket;
  int error = 0;
};

// Begins to connect; `await_connected` gives the errno of the outcome, 0 once connected, ETIMEDOUT if there is none yet.
Connection begin_to_connect(const Address& address);
int await_connected(int socket, Deadline deadline);
// Both.
Connection connect_tcp(const Address& address, Deadline deadline);

// How long each attempt to connect may take, twice as long as the one before it: where a door's backlog is full the kernel
// drops an attempt without a word, and would repeat it only after 1, 3, 7 seconds.
class ConnectPatience {
 public:
  // Between two attempts.
  static constexpr std::chrono::milliseconds kPause{20};

  std::chrono::milliseconds next() { return std::exchange(next_, std::min(2 * next_, kMost)); }

 private:
  static constexpr std::chrono::milliseconds kMost{4000};
  std::chrono::milliseconds next_{250};
};

// A listener in the abstract unix namespace under a name that the kernel chooses: nothing in the file system, gone with the
// process, visible in this network namespace only.
Result<Descriptor> listen_local(int backlog);
Result<std::string> local_name(int socket);
// ECONNREFUSED if nobody has the name. While its backlog is full this waits in line, unlike a socket that does not block;
// EAGAIN after a wait of at most `patience`, which is at least a millisecond.
Connection connect_local(std::string_view name, std::chrono::milliseconds patience);

// EAGAIN if nobody waits.
Connection accept_one(int listener);

// What one read or write moved. Neither waits; `error` is EAGAIN if nothing could be moved now.
struct Transfer {
  size_t bytes = 0;
  int error = 0;
  bool closed = false;  // the peer will send no more
  bool lost = false;    // a descriptor came along for which this process has no room
};

// A descriptor that came along replaces `*passed`. No second one, and without `passed` none, enters this process, since even to
// close what a stranger chose may block.
Transfer read_some(int socket, std::span<char> into, Descriptor* passed = nullptr);
// `pass` >= 0 travels with the first byte (unix sockets only).
Transfer write_some(int socket, std::string_view from, int pass = -1);

// Ends the connection for every holder of the socket, so that a copy in a forked child does not keep it open.
void shut(int socket);

// poll(2) until something is ready or the deadline is reached; the number of ready entries.
int poll_until(std::span<pollfd> set, Deadline deadline);

}  // namespace fccl
