// LeaderConnection: the connection between the hub and another leader, as either end holds it.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/channel.h"
#include "host_link/link_messages.h"

namespace fccl {

// Owned by a HostLink. One thread at a time. Once it has ended it holds no connection, and what is told is dropped.
class LeaderConnection {
 public:
  // `sources` are the hosts whose blobs come over it, in the order in which they come.
  LeaderConnection(int host, Channel channel, std::vector<int> sources);

  // Of the other end.
  int host() const { return host_; }
  // What encode_link has made.
  void tell(std::string_view message) {
    if (channel_) channel_->say(message);
  }
  size_t pending() const { return channel_ ? channel_->pending() : 0; }

  // What to poll for; nothing once it has ended.
  pollfd watch() const { return channel_ ? pollfd{channel_->socket(), channel_->events(), 0} : pollfd{-1, 0, 0}; }
  // Moves what can be moved without waiting.
  void pump();
  // Failures, departures and cuts, in their order; they were said before the end, if that has come.
  std::optional<LinkMessage> hear();
  // The first failure among what is still to be heard.
  const Error* failure() const;
  std::optional<LinkEnd> end() const { return end_; }
  // "the other end closed the connection".
  const std::string& why() const { return why_; }
  void break_off(std::string why);

  // What the other end said last of whom it waits for; "" = nothing.
  const std::string& awaiting() const { return awaiting_; }
  // One blob of each source, if all are here.
  bool has_blobs() const { return blobs_.size() >= sources_.size(); }
  std::vector<std::string> take_blobs();

 private:
  // Whether it makes sense.
  bool take(LinkMessage message);
  bool take(Piece piece);

  int host_;
  std::optional<Channel> channel_;
  std::deque<LinkMessage> heard_;
  std::optional<LinkEnd> end_;
  std::string why_;
  std::string awaiting_;
  std::vector<int> sources_;
  std::deque<std::string> blobs_;  // whole
  std::string blob_;               // as far as it has come
  size_t left_ = 0;                // of it
};

// Tells blobs piece by piece, so that slow readers of long ones do not pile them up. Reads what it does not own.
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

}  // namespace fccl
