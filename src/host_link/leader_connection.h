// LeaderConnection: one end of the connection between a leader and its parent or child in the tree.
#pragma once

#include <poll.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channels/channel.h"
#include "host_link/link_messages.h"

namespace fccl::core {

// A HostLink owns it. One thread at a time. Once it has ended it holds no connection, and drops what it is told.
class LeaderConnection {
 public:
  // `hosts`: how many hosts' bytes the other end gives in an exchange.
  LeaderConnection(int host, Channel channel, int hosts);

  // Returns the host of the other end.
  int host() const { return host_; }
  // Takes a message that encode_link has made.
  void tell(std::string_view message) {
    if (channel_) channel_->say(message);
  }
  // Takes one of any length, without a copy; not twice before nothing is pending.
  void tell(std::shared_ptr<const std::string> message) {
    if (channel_) channel_->say(std::move(message));
  }
  size_t pending() const { return channel_ ? channel_->pending() : 0; }

  // Returns what to poll for; an empty entry once it has ended.
  pollfd watch() const { return channel_ ? pollfd{channel_->socket(), channel_->events(), 0} : pollfd{-1, 0, 0}; }
  // Moves what can be moved without waiting.
  void pump();
  // Returns failures, departures and cuts, in their order; those said before the end can still be heard after it.
  std::optional<LinkMessage> hear();
  // Returns the first failure among the messages not yet heard.
  const Error* failure() const;
  std::optional<LinkEnd> end() const { return end_; }
  // Says why it ended: "the other end closed the connection".
  const std::string& why() const { return why_; }
  void break_off(std::string why);

  // Returns whom the other end last said that it waits for in this exchange; "" = nobody.
  const std::string& awaiting() const { return awaiting_; }
  // True if what the other end gives is here: a parent gives the bytes of all leaders, a child those of its subtree, by host.
  bool has_blobs() const { return !blobs_.empty(); }
  std::vector<std::string> take_blobs();

 private:
  // Returns false if the message makes no sense.
  bool take(LinkMessage message);

  int host_;
  std::optional<Channel> channel_;
  std::deque<LinkMessage> heard_;
  std::optional<LinkEnd> end_;
  std::string why_;
  std::string awaiting_;
  int hosts_;
  std::deque<std::vector<std::string>> blobs_;
};

}  // namespace fccl::core
