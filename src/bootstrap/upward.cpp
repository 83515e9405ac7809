// Gathers words until they are worth a message.
#include "bootstrap/upward.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sockets/socket.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// A hello waits for others, which then travel in the same message: the least and the longest time, and the part of all time so
// far. It waits longer than the least only if few others wait: fewer than a quarter of those that were passed on.
constexpr auto kLeastWait = 4ms;
constexpr auto kLongestWait = 100ms;
constexpr int kPartOfTime = 8;
constexpr size_t kFewerThan = 4;
// A parent that has said nothing for so long is silent; those who ask wait twice as long.
constexpr auto kParentTime = kAnswerDelay / 2;
// The longest time to reach a parent.
constexpr auto kMostForParent = 3s;

bool asks(const Passed& passed) {
  return std::holds_alternative<GivingUp>(passed.word) || std::holds_alternative<Failed>(passed.word);
}

}  // namespace

Upward::Upward(const UniqueId& id, int rank, int nranks, Collects self, Channel root)
    : id_(id), rank_(rank), nranks_(nranks), self_(std::move(self)) {
  begin_with(std::move(root));
}

void Upward::begin_with(Channel channel) {
  channel_.emplace(std::move(channel));
  channel_->allow(std::max(kMessageLimit, roster_limit(nranks_)));
  has_come_ = false;
  agreement_.reset();
  answer_due_.reset();
}

pollfd Upward::watch() const { return is_there() ? pollfd{channel_->socket(), channel_->events(), 0} : pollfd{-1, 0, 0}; }

Deadline Upward::patience() const {
  Deadline first = Deadline::after(1h);
  if (due_ && is_there() && channel_->pending() == 0) first.at = std::min(first.at, due_->at);
  if (answer_due_) first.at = std::min(first.at, answer_due_->at);
  return first;
}

void Upward::queue(Passed passed) {
  if (asks(passed) && !answer_due_) answer_due_ = Deadline::after(kParentTime);
  const bool is_urgent = !std::holds_alternative<Hello>(passed.word);
  queued_.push_back(std::move(passed));
  const auto wanted = Deadline::after(is_urgent ? 0ms : wait_for_more());
  due_ = due_ ? Deadline{std::min(due_->at, wanted.at)} : wanted;
}

// Ranks that come one by one, for long, do not cost their parents a message each.
std::chrono::milliseconds Upward::wait_for_more() const {
  if (kFewerThan * queued_.size() >= passed_on_) return kLeastWait;
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
  return std::clamp<std::chrono::milliseconds>(passed / kPartOfTime, kLeastWait, kLongestWait);
}

void Upward::pass_on() {
  if (!due_ || !due_->passed() || !is_there() || channel_->pending() > 0) return;
  Batch batch;
  if (!std::exchange(has_come_, true)) batch.collects = self_;
  const auto end = queued_.begin() + static_cast<ptrdiff_t>(std::min(queued_.size(), kMostPassedOn));
  for (auto passed = queued_.begin(); passed != end; ++passed) {
    if (const auto* hello = std::get_if<Hello>(&passed->word)) {
      passed->agrees = agreement_ == hello->agreement;
      agreement_ = hello->agreement;
    }
    batch.words.push_back(*passed);
    if (!stays_) said_.push_back(std::move(*passed));
  }
  passed_on_ += batch.words.size();
  queued_.erase(queued_.begin(), end);
  if (queued_.empty()) due_.reset();
  channel_->say(std::make_shared<const std::string>(encode(std::move(batch))));
  // The next poll sends what the kernel does not take now.
  (void)channel_->flush();
}

std::optional<std::string> Upward::hear() {
  std::optional<std::string> bytes = channel_->hear();
  if (bytes) answer_due_.reset();
  return bytes;
}

void Upward::lose() {
  channel_.reset();
  answer_due_.reset();
}

bool Upward::move(const PlaceInTree& place) {
  std::optional<Channel> parent = reach(*address_from(place.address), place.rank);
  self_.is_astray = !parent;
  if (parent) {
    whom_ = place.whom;
    begin_with(std::move(*parent));
  } else {
    std::optional<Channel> root = reach(id_.root, kRootRank);
    if (!root) return false;
    begin_with(std::move(*root));
  }
  queued_.insert(queued_.begin(), std::make_move_iterator(said_.begin()), std::make_move_iterator(said_.end()));
  said_.clear();
  due_ = Deadline::after(0ms);
  return true;
}

std::optional<Channel> Upward::reach(const Address& address, int rank) const {
  const Deadline until = Deadline::after(kMostForParent);
  Connection connection = connect_tcp(address, until);
  if (!connection.socket) return std::nullopt;
  Channel channel(std::move(connection.socket), Conversation(Role::connects, id_.key, {rank_}));
  if (!channel.await_open(until) || channel.peer().rank != rank || channel.peer().version != kOwnVersion) return std::nullopt;
  return channel;
}

void Upward::stay() {
  stays_ = true;
  said_.clear();
}

bool Upward::finds_silence() {
  if (!answer_due_ || !answer_due_->passed()) return false;
  answer_due_.reset();
  return true;
}

void Upward::say_farewell(bool has_roster) {
  if (!is_there()) return;
  if (has_roster) channel_->say(encode(Farewell{}));
  (void)channel_->await_sent(Deadline::after(kAnswerDelay));
}

}  // namespace fccl::core
