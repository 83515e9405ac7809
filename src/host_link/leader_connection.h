// LeaderConnection: one end of the connection between the hub and another leader.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/channel.h"
#include "host_link/link_messages.h"

namespace fccl::core {

// A HostLink owns it. One thread at a time. Once it has ended it holds no connection, and drops what it is told.
class LeaderConnection {
 public:
  // `sources` are the hosts whose blobs come over it, in that order.
  LeaderConnection(int host, Channel channel, std::vector<int> sources);

  // Returns the host of the other end.
  int host() const { return host_; }
  // Takes a message that encode_link has made.
  void tell(std::string_view message) {
    if (channel_) channel_->say(message);
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

  // Returns which rank the other end last said that it waits for; "" = none.
  const std::string& awaiting() const { return awaiting_; }
  // True if one blob of each source is here.
  bool has_blobs() const { return blobs_.size() >= sources_.size(); }
  std::vector<std::string> take_blobs();

 private:
  // Return false if the message makes no sense.
  bool take(LinkMessage message);
  bool take(Piece piece);

  int host_;
  std::optional<Channel> channel_;
  std::deque<LinkMessage> heard_;
  std::optional<LinkEnd> end_;
  std::string why_;
  std::string awaiting_;
  std::vector<int> sources_;
  std::deque<std::string> blobs_;  // complete ones
  std::string blob_;               // the part that has come
  size_t left_ = 0;                // bytes of blob_ still to come
};

// Tells blobs piece by piece, so that long ones do not pile up for slow readers. Reads blobs that it does not own.
class BlobTeller {
 public:
  struct Blob {
    int host;
    std::string_view bytes;
  };
  explicit BlobTeller(std::vector<Blob> blobs) : blobs_(std::move(blobs)) {}

  void tell(LeaderConnection& connection);
  bool done() const { return next_ == blobs_.size(); }

 private:
  std::vector<Blob> blobs_;
  size_t next_ = 0;  // the blob that is being told, and how much of it was
  size_t told_ = 0;
};

}  // namespace fccl::core
