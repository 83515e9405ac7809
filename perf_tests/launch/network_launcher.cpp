// The launcher library of processes that no mpirun started, on one machine or several: they meet by TCP at the first of them.
//
// FCCL_TESTS_NETWORK=INDEX/COUNT:HOST:PORT tells each process its place; process 0 runs on HOST and listens there, on all
// addresses. FCCL_TESTS_NETWORK_SECRET, the same in all, keeps strangers out; it is sent as it is.
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "launch/launcher.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostProcesses = 4096;
constexpr int kCouldNotMeet = 1;
constexpr auto kMeetLimit = std::chrono::seconds(60);
constexpr auto kRetry = std::chrono::milliseconds(50);
constexpr timeval kGreetingLimit{.tv_sec = 5, .tv_usec = 0};
constexpr std::size_t kSecretBytes = 64;

// What a process says first to process 0.
struct Greeting {
  std::array<char, kSecretBytes> secret{};
  std::int32_t process = -1;
};

int own = 0;
int count = 0;
// In process 0 the connection to each of the others, by their numbers; elsewhere the one to process 0, in its place.
std::vector<int> connections;

[[noreturn]] void end_with(int status) {
  std::fflush(nullptr);
  std::_Exit(status);
}

[[noreturn]] void end_without(int process) {
  std::fprintf(stderr, "process %d of this run is gone, so process %d ends\n", process, own);
  end_with(kCouldNotMeet);
}

// Returns false if the connection ends before.
bool send_all(int connection, const void* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t sent = send(connection, static_cast<const char*>(bytes) + done, size - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int connection, void* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t received = recv(connection, static_cast<char*>(bytes) + done, size - done, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    done += static_cast<std::size_t>(received);
  }
  return true;
}

// Before its bytes a process sends the status with which it ends the run: zero, as a rule.
void send_part(int process, const void* bytes, std::size_t size) {
  const int connection = connections[static_cast<std::size_t>(process)];
  const std::int32_t going_on = 0;
  if (!send_all(connection, &going_on, sizeof going_on) || !send_all(connection, bytes, size)) end_without(process);
}

void abort(int status);

void receive_part(int process, void* bytes, std::size_t size) {
  const int connection = connections[static_cast<std::size_t>(process)];
  std::int32_t status = 0;
  if (!receive_all(connection, &status, sizeof status)) end_without(process);
  if (status != 0) {
    if (own == 0) abort(status);
    end_with(status);
  }
  if (!receive_all(connection, bytes, size)) end_without(process);
}

Greeting own_greeting(const char* secret) {
  Greeting greeting;
  std::memcpy(greeting.secret.data(), secret, std::min(std::strlen(secret), kSecretBytes - 1));
  greeting.process = own;
  return greeting;
}

// Compares all of it, whatever differs first.
bool is_same(const std::array<char, kSecretBytes>& one, const std::array<char, kSecretBytes>& other) {
  int different = 0;
  for (std::size_t at = 0; at < kSecretBytes; ++at) different |= one[at] ^ other[at];
  return different == 0;
}

// Admits one that connected, if it is a process of this run that is missing.
bool admit(int connection, const char* secret) {
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kGreetingLimit, sizeof kGreetingLimit);
  Greeting greeting;
  const bool whole = receive_all(connection, &greeting, sizeof greeting);
  const bool missing = whole && is_same(greeting.secret, own_greeting(secret).secret) && greeting.process > 0 &&
                       greeting.process < count && connections[static_cast<std::size_t>(greeting.process)] < 0;
  if (!missing) {
    close(connection);
    return false;
  }
  constexpr timeval kUnlimited{};
  constexpr int kYes = 1;
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kUnlimited, sizeof kUnlimited);
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &kYes, sizeof kYes);
  connections[static_cast<std::size_t>(greeting.process)] = connection;
  return true;
}

// Listens on all addresses of this host, of both families where there are two.
int listen_at(std::uint16_t port) {
  constexpr int kYes = 1;
  constexpr int kNo = 0;
  const int both = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(port);
  if (both >= 0) {
    setsockopt(both, SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes);
    setsockopt(both, IPPROTO_IPV6, IPV6_V6ONLY, &kNo, sizeof kNo);
    if (bind(both, reinterpret_cast<const sockaddr*>(&any6), sizeof any6) == 0 && listen(both, kMostProcesses) == 0)
      return both;
    close(both);
  }
  const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes);
  if (one >= 0 && bind(one, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 && listen(one, kMostProcesses) == 0)
    return one;
  const int error = errno;
  if (one >= 0) close(one);
  errno = error;
  return -1;
}

int await_others(std::uint16_t port, const char* secret) {
  const int listener = listen_at(port);
  if (listener < 0) return errno;
  const auto end = Clock::now() + kMeetLimit;
  for (int missing = count - 1; missing > 0;) {
    pollfd waited{.fd = listener, .events = POLLIN, .revents = 0};
    if (Clock::now() > end) {
      close(listener);
      return ETIMEDOUT;
    }
    if (poll(&waited, 1, 200) <= 0) continue;
    const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0 && admit(connection, secret)) --missing;
  }
  close(listener);
  return 0;
}

// Connects to the first address that answers; -1 if none does.
int connect_to(const char* host, const char* port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, port, &hints, &found) != 0) return -1;
  int connection = -1;
  for (const addrinfo* each = found; each && connection < 0; each = each->ai_next) {
    connection = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, each->ai_addr, each->ai_addrlen) == 0) continue;
    close(connection);
    connection = -1;
  }
  freeaddrinfo(found);
  return connection;
}

int meet_first(const char* host, const char* port, const char* secret) {
  const auto end = Clock::now() + kMeetLimit;
  int connection = -1;
  while ((connection = connect_to(host, port)) < 0) {
    if (Clock::now() > end) return ETIMEDOUT;
    std::this_thread::sleep_for(kRetry);
  }
  constexpr int kYes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &kYes, sizeof kYes);
  connections[0] = connection;
  const Greeting greeting = own_greeting(secret);
  return send_all(connection, &greeting, sizeof greeting) ? 0 : ECONNRESET;
}

// `place` is INDEX/COUNT:HOST:PORT, and behind a blank the secret. Returns an errno if it is malformed, or the processes did
// not meet in time.
int start(bool, const char* place, int* process, int* processes) {
  char host[256] = "";
  char port[6] = "";
  char secret[kSecretBytes] = "";
  if (!place || std::sscanf(place, "%d/%d:%255[^ ] %63s", &own, &count, host, secret) < 3) return EINVAL;
  char* colon = std::strrchr(host, ':');
  if (!colon || std::sscanf(colon + 1, "%5[0-9]", port) != 1) return EINVAL;
  *colon = '\0';
  const int number = std::atoi(port);
  if (count < 1 || count > kMostProcesses || own < 0 || own >= count || number < 1 || number > 65535) return EINVAL;
  connections.assign(static_cast<std::size_t>(count), -1);
  *process = own;
  *processes = count;
  return own == 0 ? await_others(static_cast<std::uint16_t>(number), secret) : meet_first(host, port, secret);
}

void finish() {
  for (const int connection : connections)
    if (connection >= 0) close(connection);
}

void all_gather(const void* told, std::size_t bytes, void* all) {
  if (own != 0) {
    send_part(0, told, bytes);
    receive_part(0, all, bytes * static_cast<std::size_t>(count));
    return;
  }
  std::memcpy(all, told, bytes);
  for (int process = 1; process < count; ++process)
    receive_part(process, static_cast<char*>(all) + static_cast<std::size_t>(process) * bytes, bytes);
  for (int process = 1; process < count; ++process) send_part(process, all, bytes * static_cast<std::size_t>(count));
}

void barrier() {
  const char here = 1;
  std::vector<char> all(static_cast<std::size_t>(count));
  all_gather(&here, sizeof here, all.data());
}

// The others hear of it when they meet next.
void abort(int status) {
  const std::int32_t told = status;
  for (const int connection : connections)
    if (connection >= 0) send(connection, &told, sizeof told, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (own == 0) end_with(status);
}

const char* version() { return "processes that meet by TCP (FCCL_TESTS_NETWORK)"; }
bool supports(int, int, int) { return false; }
int call(const FcclPeerCall*) { return ENOSYS; }

constexpr FcclLauncher kLauncher{.start = start,
                                 .finish = finish,
                                 .barrier = barrier,
                                 .all_gather = all_gather,
                                 .abort = abort,
                                 .version = version,
                                 .supports = supports,
                                 .call = call};

}  // namespace

extern "C" __attribute__((visibility("default"))) const FcclLauncher* fccl_launcher() { return &kLauncher; }
