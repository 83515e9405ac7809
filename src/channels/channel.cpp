// Moves bytes between a Conversation and its socket, and closes all sockets in a forked child.
#include "channels/channel.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <set>
#include <utility>

#include "base/check.h"
#include "channels/traffic.h"
#include "os/error_text.h"
#include "sockets/socket.h"

namespace fccl::core {
namespace {

// Holds the sockets of all channels of this process, which a forked child closes. Any thread may call.
class OpenSockets {
 public:
  void add(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.insert(socket);
  }
  void remove(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.erase(socket);
  }

  // A fork locks the set, since the child could not use one that another thread was changing.
  void stay() { mutex_.lock(); }
  void go_on() { mutex_.unlock(); }
  void leave_to_parent() {
    for (const int socket : sockets_) ::close(socket);
    sockets_.clear();
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::set<int> sockets_;
};

// Made when the library is loaded: if it were made at first use, a fork by another thread could find it half made. It is never
// destroyed, since detached threads also have channels.
OpenSockets& open_sockets = *new OpenSockets;

[[maybe_unused]] const bool kSurvivesForks = [] {
  const int registered =
      pthread_atfork([] { open_sockets.stay(); }, [] { open_sockets.go_on(); }, [] { open_sockets.leave_to_parent(); });
  check(registered == 0, "a fork handler can be registered");
  return true;
}();

}  // namespace

Channel::Channel(Descriptor socket, Conversation conversation)
    : socket_(std::move(socket)), conversation_(std::move(conversation)) {
  if (conversation_.role() == Role::connects) expect_descriptors(1);
  if (!socket_) return;
  open_sockets.add(socket_.get());
  count_socket();
}

Channel::~Channel() {
  if (!socket_) return;
  shut(socket_.get());
  open_sockets.remove(socket_.get());
}

void Channel::say(std::string_view message) {
  conversation_.say(message);
  count_message();
}

void Channel::say(std::shared_ptr<const std::string> message) {
  conversation_.say(std::move(message));
  count_message();
}

void Channel::say(std::string_view message, std::span<const int> descriptors) {
  say(message);
  to_pass_.assign(descriptors.begin(), descriptors.end());
}

std::vector<Descriptor> Channel::take_descriptors() {
  if (!std::ranges::all_of(passed_, [](const Descriptor& each) { return bool{each}; })) return {};
  return std::exchange(passed_, std::vector<Descriptor>(passed_.size()));
}

short Channel::events() const { return static_cast<short>(pending() > 0 ? POLLIN | POLLOUT : POLLIN); }

Result<void> Channel::flush() {
  while (pending() > 0) {
    const Transfer put = write_some(socket_.get(), conversation_.outgoing(), to_pass_);
    if (put.error == EAGAIN) return {};
    if (put.error != 0) return fail(fcclRemoteError, fmt::format("the connection broke: {}", error_text(put.error)));
    to_pass_.clear();
    conversation_.sent(put.bytes);
    count_sent(put.bytes);
  }
  return {};
}

Result<void> Channel::pump() {
  std::array<char, 4096> buffer;
  // The number of reads is bounded, so that a peer that never stops talking cannot keep the owner from its other channels.
  for (int reads = 0; reads < 4; ++reads) {
    const Transfer got = read_some(socket_.get(), buffer, passed_);
    lost_ = lost_ || got.lost;
    if (got.error == EAGAIN) break;
    if (got.error != 0) return fail(fcclRemoteError, fmt::format("the connection broke: {}", error_text(got.error)));
    if (got.closed) return fail(fcclRemoteError, "the other end closed the connection");
    if (Result<void> taken = conversation_.take({buffer.data(), got.bytes}); !taken) {
      // The peer may be waiting for the answer to its wrong proof; a failure to send it changes nothing here.
      (void)flush();
      return taken;
    }
    FCCL_TRY(flush());
    if (got.bytes < buffer.size()) break;
  }
  return flush();
}

Result<void> Channel::pump_until(Deadline deadline) {
  // The other end may have sent its last words before it stopped reading.
  if (!flush()) return pump();
  pollfd ready{socket_.get(), events(), 0};
  if (poll_until({&ready, 1}, deadline) == 0) return fail(fcclTimeout, "the other end said nothing until the deadline");
  return pump();
}

Result<void> Channel::await_open(Deadline deadline) {
  while (!open()) FCCL_TRY(pump_until(deadline));
  return {};
}

Result<std::string> Channel::await_message(Deadline deadline) {
  while (true) {
    if (std::optional<std::string> message = hear()) return std::move(*message);
    const Result<void> pumped = pump_until(deadline);
    if (pumped) continue;
    // The last words may have come together with the end of the connection.
    if (std::optional<std::string> message = hear()) return std::move(*message);
    return fail(pumped.error());
  }
}

Result<void> Channel::await_sent(Deadline deadline) {
  FCCL_TRY(flush());
  while (pending() > 0) FCCL_TRY(pump_until(deadline));
  return {};
}

}  // namespace fccl::core
