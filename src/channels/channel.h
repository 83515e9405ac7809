// Channel: a Conversation over a connected socket.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "channels/handshake.h"
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
  // Sends descriptors with the message, at most kMostPassed; the caller keeps them open until nothing is pending.
  void say(std::string_view message, std::span<const int> descriptors);
  std::optional<std::string> hear() { return conversation_.hear(); }
  // Returns the descriptors that came with what was heard; none unless as many came as were expected: one, if not told
  // otherwise before they came. The listening end takes none.
  std::vector<Descriptor> take_descriptors();
  void expect_descriptors(size_t count) { passed_.resize(count); }
  // True if descriptors came that this process had no room for.
  bool has_lost_descriptors() const { return lost_; }
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
  std::vector<Descriptor> passed_;
  bool lost_ = false;
  std::vector<int> to_pass_;
};

}  // namespace fccl::core
