// Assembles blobs from pieces, and queues what the other end says.
#include "host_link/leader_connection.h"

#include <algorithm>
#include <utility>

namespace fccl::core {
namespace {

constexpr size_t kPendingLimit = 65536;

}  // namespace

LeaderConnection::LeaderConnection(int host, Channel channel, std::vector<int> sources)
    : host_(host), channel_(std::move(channel)), sources_(std::move(sources)) {}

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

bool LeaderConnection::take(LinkMessage message) {
  if (std::holds_alternative<Piece>(message)) return take(std::get<Piece>(std::move(message)));
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

// The other end may be at most one exchange ahead of this one.
bool LeaderConnection::take(Piece piece) {
  if (blobs_.size() >= 2 * sources_.size() || piece.host != sources_[blobs_.size() % sources_.size()]) return false;
  if (!blob_.empty() && piece.left != left_) return false;
  left_ = piece.left - piece.bytes.size();
  blob_ += piece.bytes;
  if (left_ == 0) blobs_.push_back(std::exchange(blob_, {}));
  return true;
}

std::vector<std::string> LeaderConnection::take_blobs() {
  const auto end = blobs_.begin() + static_cast<ptrdiff_t>(sources_.size());
  std::vector<std::string> taken(std::make_move_iterator(blobs_.begin()), std::make_move_iterator(end));
  blobs_.erase(blobs_.begin(), end);
  return taken;
}

void BlobTeller::tell(LeaderConnection& connection) {
  while (!done() && !connection.end() && connection.pending() < kPendingLimit) {
    const Blob& blob = blobs_[next_];
    const std::string_view rest = blob.bytes.substr(told_);
    const std::string_view piece = rest.substr(0, kPieceLimit);
    connection.tell(encode_link(Piece{blob.host, static_cast<uint32_t>(rest.size()), std::string(piece)}));
    told_ += piece.size();
    if (told_ < blob.bytes.size()) continue;
    ++next_;
    told_ = 0;
  }
}

}  // namespace fccl::core
