// Channel: a Conversation over a connected socket.
#include "communicator/channel.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "system/socket.h"

namespace fccl {

Channel::Channel(Descriptor socket, Conversation conversation)
    : socket_(std::move(socket)), conversation_(std::move(conversation)) {}

Channel::~Channel() {
  if (socket_) shut(socket_.get());
}

void Channel::say(std::string_view message, int descriptor) {
  conversation_.say(message);
  to_pass_ = descriptor;
}

short Channel::events() const { return static_cast<short>(pending() > 0 ? POLLIN | POLLOUT : POLLIN); }

Result<void> Channel::flush() {
  while (pending() > 0) {
    const Transfer put = write_some(socket_.get(), conversation_.outgoing(), to_pass_);
    if (put.error == EAGAIN) return {};
    if (put.error != 0) return fail(fcclRemoteError, fmt::format("the connection broke: {}", error_text(put.error)));
    to_pass_ = -1;
    conversation_.sent(put.bytes);
  }
  return {};
}

Result<void> Channel::pump() {
  std::array<char, 4096> buffer;
  // Bounded, so that a peer that never stops talking cannot keep the owner from its other channels.
  for (int reads = 0; reads < 4; ++reads) {
    const Transfer got = read_some(socket_.get(), buffer, conversation_.role() == Role::connects ? &passed_ : nullptr);
    if (got.error == EAGAIN) break;
    if (got.error != 0) return fail(fcclRemoteError, fmt::format("the connection broke: {}", error_text(got.error)));
    if (got.closed) return fail(fcclRemoteError, "the other end closed the connection");
    if (Result<void> taken = conversation_.take({buffer.data(), got.bytes}); !taken) {
      // It may be waiting for the answer to its wrong proof; whether it can still be told makes no difference here.
      (void)flush();
      return taken;
    }
    FCCL_TRY(flush());
    if (got.bytes < buffer.size()) break;
  }
  return flush();
}

Result<void> Channel::pump_until(Deadline deadline) {
  FCCL_TRY(flush());
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
    // The last words may have come with the end.
    if (std::optional<std::string> message = hear()) return std::move(*message);
    return fail(pumped.error());
  }
}

Result<void> Channel::await_sent(Deadline deadline) {
  FCCL_TRY(flush());
  while (pending() > 0) FCCL_TRY(pump_until(deadline));
  return {};
}

}  // namespace fccl
