// Channel: a Conversation over a connected socket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bootstrap/handshake.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace fccl::core {

// Owns its socket, and ends the connection for every holder of it when destroyed. A forked child holds none, so that the other
// end sees at once when this process dies; it must not use the channels that it was copied with. One thread at a time. After an
// error: drop it.
class Channel {
 public:
  Channel(Descriptor socket, Conversation conversation);
  Channel(Channel&&) noexcept = default;
  ~Channel();

  bool open() const { return conversation_.open(); }
  const Party& peer() const { return conversation_.peer(); }

  void say(std::string_view message);
  // Says what other channels say, too, without a copy; not twice before nothing is pending.
  void say(std::shared_ptr<const std::string> message);
  // From now on a message of the peer may have so many bytes.
  void allow(size_t bytes) { conversation_.allow(bytes); }
  // Sends `descriptor` with the message; the caller keeps it open until nothing is pending.
  void say(std::string_view message, int descriptor);
  std::optional<std::string> hear() { return conversation_.hear(); }
  // Returns the descriptor that came with what was heard, if any. The listening end takes none.
  Descriptor take_descriptor() { return std::move(passed_); }
  // True if a descriptor came that this process had no room for.
  bool has_lost_descriptor() const { return lost_; }
  // Returns the number of bytes said and not yet given to the kernel; of a message that is shared, those of the part at hand.
  size_t pending() const { return conversation_.outgoing().size(); }

  // For an owner with many channels: poll `socket` for `events`, then let `pump` move what can be moved without waiting.
  // fcclRemoteError: the peer closed the connection. fcclInvalidUsage: it is a stranger. Messages that arrived before the error
  // can still be heard.
  int socket() const { return socket_.get(); }
  short events() const;
  Result<void> pump();
  // Gives the kernel as much as it takes now of what was said, and receives nothing.
  Result<void> flush();

  // For an owner with one channel: pump until the conversation is open, a message is there, or nothing is pending. fcclTimeout
  // leaves the channel good.
  Result<void> await_open(Deadline deadline);
  Result<std::string> await_message(Deadline deadline);
  Result<void> await_sent(Deadline deadline);

 private:
  Result<void> pump_until(Deadline deadline);

  Descriptor socket_;
  Conversation conversation_;
  Descriptor passed_;
  bool lost_ = false;
  int to_pass_ = -1;
};

}  // namespace fccl::core
