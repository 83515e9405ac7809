// Queues what the other end says.
#include "host_link/leader_connection.h"

#include <algorithm>
#include <utility>

namespace fccl::core {

LeaderConnection::LeaderConnection(int host, Channel channel, int hosts)
    : host_(host), channel_(std::move(channel)), hosts_(hosts) {
  channel_->allow(message_limit(hosts));
}

void LeaderConnection::pump() {
  if (!channel_) return;
  const Result<void> pumped = channel_->pump();
  while (channel_) {
    const std::optional<std::string> bytes = channel_->hear();
    if (!bytes) break;
    std::optional<LinkMessage> message = decode_link(*bytes);
    if (!message || !take(std::move(*message))) break_off("it sent a message that makes no sense here");
  }
  if (!pumped) break_off(pumped.error().message);
}

std::optional<LinkMessage> LeaderConnection::hear() {
  if (heard_.empty()) return std::nullopt;
  std::optional<LinkMessage> message(std::move(heard_.front()));
  heard_.pop_front();
  return message;
}

const Error* LeaderConnection::failure() const {
  const auto found = std::find_if(heard_.begin(), heard_.end(),
                                  [](const LinkMessage& message) { return std::holds_alternative<Failure>(message); });
  return found == heard_.end() ? nullptr : &std::get<Failure>(*found).error;
}

void LeaderConnection::break_off(std::string why) {
  if (!channel_) return;
  channel_.reset();
  end_ = LinkEnd::broken;
  why_ = std::move(why);
}

// The other end may be at most one exchange ahead of this one.
bool LeaderConnection::take(LinkMessage message) {
  if (std::holds_alternative<Blobs>(message)) {
    std::vector<std::string>& blobs = std::get<Blobs>(message).of_hosts;
    if (!std::cmp_equal(blobs.size(), hosts_) || blobs_.size() >= 2) return false;
    blobs_.push_back(std::move(blobs));
    awaiting_.clear();
    return true;
  }
  if (std::holds_alternative<Goodbye>(message)) {
    break_off("it said goodbye");
    end_ = LinkEnd::goodbye;
    return true;
  }
  if (std::holds_alternative<Awaiting>(message))
    awaiting_ = std::get<Awaiting>(std::move(message)).whom;
  else
    heard_.push_back(std::move(message));
  return true;
}

std::vector<std::string> LeaderConnection::take_blobs() {
  std::vector<std::string> taken = std::move(blobs_.front());
  blobs_.pop_front();
  return taken;
}

}  // namespace fccl::core
