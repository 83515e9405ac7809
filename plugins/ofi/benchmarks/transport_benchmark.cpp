// Measures a transport between two processes of this host: the time of a small write, and the rate of large ones.
//
//   transport_benchmark LIBRARY [PROVIDER [NIC [ROUNDS]]]      as in TransportRequest; tcp over lo if not given
//
// A round is a small write each way, 20000 if not given; every fifth round also has a large write.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "wire/plugin.h"

namespace {

using namespace fccl::core;
using Clock = std::chrono::steady_clock;

constexpr size_t kLarge = size_t{1} << 20;
constexpr int kWindow = 8;
constexpr int kRounds = 20000;
constexpr int kRoundsPerLargeWrite = 5;

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

// The two processes exchange this before they begin.
struct Greeting {
  std::array<std::byte, Transport::kAddressBytes> address{};
  size_t address_bytes = 0;
  RemoteMemory memory;
};

class Side {
 public:
  Side(const std::string& library, const TransportRequest& request, int socket)
      : transport_(must(open_transport(library, request))), memory_(kLarge * kWindow) {
    own_ = must(transport_->register_memory(memory_, PeersMay::nothing));
    const MemoryId landing = must(transport_->register_memory(memory_, PeersMay::write));
    Greeting mine;
    const auto address = transport_->address(0);
    std::ranges::copy(address, mine.address.begin());
    mine.address_bytes = address.size();
    mine.memory = transport_->remote(landing, 0);
    Greeting theirs;
    if (::write(socket, &mine, sizeof(mine)) != sizeof(mine) || ::read(socket, &theirs, sizeof(theirs)) != sizeof(theirs))
      std::exit(1);
    peer_ = must(transport_->connect(0, std::span(theirs.address).first(theirs.address_bytes)));
    remote_ = theirs.memory;
    // Neither process may send before the other one knows it as its peer.
    char ready = 1;
    if (::write(socket, &ready, 1) != 1 || ::read(socket, &ready, 1) != 1) std::exit(1);
  }

  void write(size_t bytes, int slot) {
    Operation operation{.kind = Operation::Kind::write, .peer = peer_, .memory = own_, .bytes = bytes, .remote = remote_};
    operation.local = memory_.data() + static_cast<size_t>(slot) * kLarge;
    operation.remote.address += static_cast<size_t>(slot) * kLarge;
    while (must(transport_->post(0, std::span(&operation, 1))) == 0) poll();
  }
  void poll() {
    std::array<Completion, 16> found;
    const size_t count = must(transport_->poll(0, found));
    for (size_t i = 0; i < count; ++i) {
      if (found[i].kind == Completion::Kind::ended) ++ended_;
      if (found[i].kind == Completion::Kind::arrived) ++arrived_;
      if (found[i].kind == Completion::Kind::failed) must(Result<int>(fail(transport_->error_of(found[i].tag))));
    }
  }
  void await_arrived(int count) {
    while (arrived_ < count) poll();
  }
  void await_ended(int count) {
    while (ended_ < count) poll();
  }
  std::string description() const { return transport_->description(); }

  // Counts since the process began.
  int arrived() const { return arrived_; }
  int ended() const { return ended_; }

 private:
  int arrived_ = 0;
  int ended_ = 0;
  std::unique_ptr<Transport> transport_;
  std::vector<std::byte> memory_;
  MemoryId own_{};
  PeerId peer_{};
  RemoteMemory remote_;
};

void small_writes(Side& side, bool first, int rounds) {
  std::vector<double> microseconds;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    if (first) side.write(8, 0);
    side.await_arrived(round + 1);
    if (!first) side.write(8, 0);
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 2);
  }
  side.await_ended(rounds);
  std::ranges::sort(microseconds);
  if (first)
    fmt::print("write of 8 bytes, one way: median {:.2f} us, tenth {:.2f} us\n", microseconds[rounds / 2],
               microseconds[rounds / 10]);
}

void large_writes(Side& side, bool first, int writes) {
  const auto begin = Clock::now();
  const int arrived = side.arrived();
  const int ended = side.ended();
  if (first) {
    for (int i = 0; i < writes; ++i) {
      side.await_ended(ended + i - kWindow + 1);
      side.write(kLarge, i % kWindow);
    }
    side.await_ended(ended + writes);
    side.await_arrived(arrived + 1);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    fmt::print("writes of 1 MiB, {} at once: {:.2f} GB/s\n", kWindow, writes * static_cast<double>(kLarge) / seconds / 1e9);
  } else {
    side.await_arrived(arrived + writes);
    side.write(0, 0);
    side.await_ended(ended + 1);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "transport_benchmark LIBRARY [PROVIDER [NIC [ROUNDS]]]\n");
    return 2;
  }
  const TransportRequest request{.provider = count > 2 ? arguments[2] : "tcp", .nics = {count > 3 ? arguments[3] : "lo"}};
  const int rounds = count > 4 ? std::atoi(arguments[4]) : kRounds;
  if (rounds < kRoundsPerLargeWrite) {
    fmt::print(stderr, "transport_benchmark: ROUNDS is '{}'; give a number from {} on\n", arguments[4], kRoundsPerLargeWrite);
    return 2;
  }
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) return 1;
  const pid_t child = ::fork();
  const bool first = child != 0;
  {
    Side side(arguments[1], request, sockets[first ? 0 : 1]);
    if (first) fmt::print("{}\n", side.description());
    small_writes(side, first, rounds);
    large_writes(side, first, rounds / kRoundsPerLargeWrite);
    // The process that finishes first must keep polling until the other one has finished.
    char done = 0;
    if (first && ::write(sockets[0], &done, 1) != 1) return 1;
    if (!first && ::read(sockets[1], &done, 1) != 1) return 1;
  }
  int status = 0;
  if (first) ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
