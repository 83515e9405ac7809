// How a rank tells the root that it gives up, and hears what others gave as reasons.
#include "bootstrap/presence.h"

#include <fmt/format.h>

#include "bootstrap/messages.h"
#include "waiting/failure_timing.h"

namespace fccl::core {

using namespace std::chrono_literals;

Result<void> Presence::look() {
  listen(Deadline::after(0ms));
  if (told_) return fail(*told_);
  return {};
}

Error Presence::give_up(Error why) {
  if (!channel_) return why;
  // This rank may see another one's end a moment before the root does.
  if (why.code == fcclRemoteError) listen(Deadline::after(kDeathDelay));
  if (!told_) {
    if (channel_) channel_->say(encode(Failed{why}));
    listen(Deadline::after(kAnswerDelay));
  }
  channel_.reset();
  return told_.value_or(std::move(why));
}

void Presence::leave() {
  if (!channel_) return;
  channel_->say(encode(Farewell{}));
  // If the root is gone, this fails, and nothing depends on it.
  (void)channel_->await_sent(Deadline::after(0ms));
  channel_.reset();
}

void Presence::listen(Deadline deadline) {
  while (channel_ && !told_) {
    const Result<std::string> bytes = channel_->await_message(deadline);
    if (!bytes && bytes.error().code == fcclTimeout) return;
    const std::optional<Message> message = bytes ? decode(*bytes) : std::nullopt;
    const auto* lost = message ? std::get_if<LostWay>(&*message) : nullptr;
    if (message && std::holds_alternative<Refusal>(*message))
      told_ = std::get<Refusal>(*message).error;
    else if (lost != nullptr && !lost->why.empty())
      lose(lost->whom.empty() ? root_ : lost->whom, lost->why);
    else if (!bytes)
      lose(way_, bytes.error().message);
    else if (lost == nullptr)
      told_ =
          Error{MessageKind::died, way_ + " ended before the communicator was ready: it sent a message that makes no sense"};
  }
}

// The end of the root, or of the way to it, counts as a refusal.
void Presence::lose(const std::string& whom, const std::string& why) {
  if (root_may_end_)
    channel_.reset();
  else
    told_ = Error{MessageKind::died, fmt::format("{} ended before the communicator was ready: {}", whom, why)};
}

}  // namespace fccl::core
