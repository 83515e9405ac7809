// Meets through the store, and then waits for its connection to close.
#include "leaving.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "completions.h"

namespace fccl::torch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMeetingTime{1000};
// The store's own calls have no deadline if its host is stopped.
constexpr milliseconds kPatience{1300};
// Time for rank 0 to close its store, which the others could still reach.
constexpr milliseconds kClosingTime{100};
// The store closes its connections a moment before it stops listening.
constexpr milliseconds kHeadStart{5};

// Returns nothing unless the store is behind a socket.
std::optional<std::uint16_t> port_of(const c10::intrusive_ptr<c10d::Store>& store) {
  c10::intrusive_ptr<c10d::Store> below = store;
  if (auto* prefixed = dynamic_cast<c10d::PrefixStore*>(store.get())) below = prefixed->getUnderlyingNonPrefixStore();
  auto* served = dynamic_cast<c10d::TCPStore*>(below.get());
  if (served == nullptr) return std::nullopt;
  return served->getPort();
}

std::vector<int> open_descriptors() {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    found.push_back(descriptor);
  }
  return found;
}

using NameOfSocket = int (*)(int, sockaddr*, socklen_t*);

// Returns the port of a socket's own end (getsockname) or of its peer's (getpeername).
std::optional<std::uint16_t> port_of_end(int descriptor, NameOfSocket name) {
  sockaddr_storage end{};
  socklen_t length = sizeof end;
  if (name(descriptor, reinterpret_cast<sockaddr*>(&end), &length) != 0) return std::nullopt;
  if (end.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(end).sin_port);
  if (end.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(end).sin6_port);
  return std::nullopt;
}

bool listens_at(std::uint16_t port) {
  return std::ranges::any_of(open_descriptors(), [port](int descriptor) {
    int listens = 0;
    socklen_t length = sizeof listens;
    return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0 &&
           port_of_end(descriptor, getsockname) == port;
  });
}

// True on a rank that hosts the store: rank 0, unless the caller or an agent of torchrun hosts it elsewhere.
bool hosts(const c10::intrusive_ptr<c10d::Store>& store) {
  const std::optional<std::uint16_t> port = port_of(store);
  return port && listens_at(*port);
}

// Returns once the store's host has closed a connection to it, or after kClosingTime. The store hides its socket, and its own
// calls log a warning when they find the connection closed.
void await_closing(const c10::intrusive_ptr<c10d::Store>& store) {
  const std::optional<std::uint16_t> port = port_of(store);
  std::vector<pollfd> connections;
  for (const int descriptor : open_descriptors())
    if (port && port_of_end(descriptor, getpeername) == port) connections.push_back({descriptor, POLLRDHUP, 0});
  if (poll(connections.data(), connections.size(), static_cast<int>(kClosingTime.count())) > 0)
    std::this_thread::sleep_for(kHeadStart);
}

// Throws if a rank does not come, or if the store is gone.
void leave(const c10::intrusive_ptr<c10d::Store>& store, const std::string& key, int rank, int size) {
  const std::string all = key + "all", hosted = key + "hosted";
  if (rank == 0) {
    store->set(hosted, hosts(store) ? "by rank 0" : "elsewhere");
  } else {
    store->wait({hosted}, kMeetingTime);
  }
  // This comes first: rank 0 closes the store as soon as all ranks are there.
  const bool closes = rank != 0 && store->get_to_str(hosted) == "by rank 0";
  if (store->add(key, 1) == size) {
    store->set(all, "left");
  } else {
    store->wait({all}, kMeetingTime);
  }
  if (closes) await_closing(store);
}

}  // namespace

void leave_together(const c10::intrusive_ptr<c10d::Store>& store, const std::string& key, int rank, int size) {
  auto left = std::make_shared<std::promise<void>>();
  std::future<void> result = left->get_future();
  // The store is released before the caller continues: its last holder on rank 0 closes it.
  Completions::of_process().post([left = std::move(left), held = store, key, rank, size]() mutable {
    try {
      leave(held, key, rank, size);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)  somebody has not come, or the store is gone
    }
    held.reset();
    left->set_value();
  });
  result.wait_for(kPatience);
}

}  // namespace fccl::torch
