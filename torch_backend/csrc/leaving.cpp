// Lets the ranks of a healthy default group leave at one moment.
#include "leaving.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "completions.h"

namespace fccl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMeetingTime{1000};
// The store's own calls have no deadline where its host is stopped.
constexpr milliseconds kPatience{1300};
// For rank 0 to close its store, which the others would still reach.
constexpr milliseconds kClosingTime{100};
// The store closes its connections a moment before it stops listening.
constexpr milliseconds kHeadStart{5};

// False if somebody has not come.
bool meet(c10d::Store& store, const std::string& key, int size) {
  try {
    const std::string all = key + "all";
    if (store.add(key, 1) == size) {
      store.set(all, "left");
    } else {
      store.wait({all}, kMeetingTime);
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// An agent of torchrun keeps the store that it hosts.
bool is_an_agents() {
  const char* said = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return said != nullptr && std::string_view(said) == "True";
}

// Nothing unless the store is one that rank 0 hosts.
std::optional<std::uint16_t> port_of(const c10::intrusive_ptr<c10d::Store>& store) {
  if (is_an_agents()) return std::nullopt;
  c10::intrusive_ptr<c10d::Store> below = store;
  if (auto* prefixed = dynamic_cast<c10d::PrefixStore*>(store.get())) below = prefixed->getUnderlyingNonPrefixStore();
  auto* hosted = dynamic_cast<c10d::TCPStore*>(below.get());
  if (hosted == nullptr) return std::nullopt;
  return hosted->getPort();
}

std::optional<std::uint16_t> peers_port(int descriptor) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return std::nullopt;
  if (peer.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(peer).sin_port);
  if (peer.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(peer).sin6_port);
  return std::nullopt;
}

// The store does not tell its socket, and its own calls log a warning where they find the connection closed.
std::vector<pollfd> connections_to(std::uint16_t port) {
  std::vector<pollfd> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (peers_port(descriptor) == port) found.push_back({descriptor, POLLRDHUP, 0});
  }
  return found;
}

// Returns when the store's host has closed a connection to it, or after kClosingTime.
void await_closing(const c10::intrusive_ptr<c10d::Store>& store) {
  const std::optional<std::uint16_t> port = port_of(store);
  if (!port) return;
  std::vector<pollfd> connections = connections_to(*port);
  if (connections.empty()) return;
  if (poll(connections.data(), connections.size(), static_cast<int>(kClosingTime.count())) > 0)
    std::this_thread::sleep_for(kHeadStart);
}

}  // namespace

void leave_together(const c10::intrusive_ptr<c10d::Store>& store, const std::string& key, int rank, int size) {
  auto left = std::make_shared<std::promise<void>>();
  std::future<void> result = left->get_future();
  // The store is given back before the caller goes on: its last holder on rank 0 closes it.
  Completions::of_process().post([left = std::move(left), held = store, key, rank, size]() mutable {
    if (meet(*held, key, size) && rank != 0) await_closing(held);
    held.reset();
    left->set_value();
  });
  result.wait_for(kPatience);
}

}  // namespace fccl
