// Batches what goes up, and repeats what comes down.
#include "bootstrap/collector.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sockets/socket.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// As long as the root waits for ranks that are stopped.
constexpr auto kStoppedTime = 60s;
// A word waits for others, which then travel in the same message: the least and the longest time, and the part of all time so
// far. It waits longer than the least only if few others wait: fewer than a quarter of those that were passed on.
constexpr auto kLeastWait = 4ms;
constexpr auto kLongestWait = 100ms;
constexpr int kPartOfTime = 8;
constexpr size_t kFewerThan = 4;
// A parent that has said nothing for so long is silent; those who ask wait twice as long.
constexpr auto kParentTime = kAnswerDelay / 2;
// Longest time to reach a parent.
constexpr auto kMostForParent = 3s;

bool is_urgent(const Passed& passed) { return !std::holds_alternative<Hello>(passed.word); }

}  // namespace

Collector::Collector(CollectorSeat seat) : seat_(std::move(seat)) {
  begin_with(std::move(seat_.root));
  door_acceptor_.emplace(seat_.door.get(), seat_.id.key, Party{seat_.rank});
  if (seat_.listener) tree_acceptor_.emplace(seat_.listener.get(), seat_.id.key, Party{seat_.rank});
}

Collector::~Collector() { close_doors(); }

void Collector::begin_with(Channel parent) {
  parent_.emplace(std::move(parent));
  parent_->allow(std::max(kMessageLimit, roster_limit(seat_.nranks)));
  has_come_ = false;
  agreement_.reset();
}

void Collector::close_doors() {
  for (auto* acceptor : {&door_acceptor_, &tree_acceptor_}) acceptor->reset();
  for (Descriptor* listener : {&seat_.door, &seat_.listener}) {
    shut(listener->get());
    listener->close();
  }
}

void Collector::serve() {
  std::vector<pollfd> polled;
  // Its first words may have come with the end of the handshake.
  attend_parent();
  for (; !finished(); pass_on()) {
    polled.clear();
    polled.push_back(parent_ ? pollfd{parent_->socket(), parent_->events(), 0} : pollfd{-1, 0, 0});
    if (door_acceptor_) door_acceptor_->watch(polled);
    const size_t of_door = polled.size();
    if (tree_acceptor_) tree_acceptor_->watch(polled);
    const size_t of_tree = polled.size();
    for (const Client& client : clients_) polled.push_back({client.channel.socket(), client.channel.events(), 0});
    poll_until(polled, patience());
    auto next = clients_.begin();
    for (const pollfd& entry : std::span(polled).subspan(of_tree)) {
      const auto client = next++;
      if (entry.revents != 0) attend(client);
    }
    if (door_acceptor_) welcome(door_acceptor_->admit(std::span(polled).first(of_door).subspan(1)), false);
    if (tree_acceptor_) welcome(tree_acceptor_->admit(std::span(polled).first(of_tree).subspan(of_door)), true);
    if (polled.front().revents != 0) attend_parent();
    if (is_short_of_descriptors()) close_doors();
    if (answer_due_ && answer_due_->passed()) {
      answer_due_.reset();
      tell_who_is_silent({whom_});
    }
  }
  if (!parent_) return;
  if (has_roster_) parent_->say(encode(Farewell{}));
  (void)parent_->await_sent(Deadline::after(kAnswerDelay));
}

// Ranks that wait at a door which cannot let them in go to the root when it closes, and so do later ones.
bool Collector::is_short_of_descriptors() const {
  return (door_acceptor_ && door_acceptor_->shortage() != 0) || (tree_acceptor_ && tree_acceptor_->shortage() != 0);
}

// Before there is a roster or a failure, ranks may still come.
bool Collector::finished() const {
  if (end_ && end_->passed()) return true;
  return clients_.empty() && (has_roster_ || (refusal_ && (own_has_come_ || !door_acceptor_))) && (queued_.empty() || !parent_);
}

Deadline Collector::patience() const {
  Deadline first = Deadline::after(1h);
  for (const auto& acceptor : {&door_acceptor_, &tree_acceptor_})
    if (*acceptor) first.at = std::min(first.at, (*acceptor)->patience().at);
  for (const auto& moment : {due_, answer_due_, end_})
    if (moment) first.at = std::min(first.at, moment->at);
  return first;
}

void Collector::welcome(std::list<Channel> admitted, bool collect) {
  for (Channel& channel : admitted) {
    if (channel.peer().version != kOwnVersion) continue;
    if (collect) channel.allow(kBatchLimit);
    if (refusal_) channel.say(*refusal_);
    own_has_come_ = own_has_come_ || channel.peer().rank == seat_.rank;
    clients_.push_back({std::move(channel), collect});
  }
  if (refusal_ && own_has_come_) close_doors();
}

void Collector::attend(std::list<Client>::iterator client) {
  Result<void> pumped = client->channel.pump();
  while (std::optional<std::string> bytes = client->channel.hear())
    if (!hear(*client, *bytes)) pumped = fail(fcclInvalidUsage, "it sent a message that makes no sense here");
  if (pumped) return;
  // One that has said nothing yet may have become impatient, and then comes to the root itself.
  const bool is_known = client->member || !client->ranks.empty() || refusal_;
  // The root names the first that it is told of, and that is the rank whose end it was.
  if (is_known && !client->is_leaving) {
    queue({client->rank(), Gone{pumped.error().message}});
    client->ranks.erase(client->rank());
    for (const int rank : client->ranks) queue({rank, Gone{pumped.error().message}});
  }
  if (client->is_leaving) left_.insert(client->ranks.begin(), client->ranks.end());
  clients_.erase(client);
}

bool Collector::hear(Client& client, const std::string& bytes) {
  std::optional<Message> message = decode(bytes);
  if (!message) return false;
  if (client.collects) {
    if (std::holds_alternative<Batch>(*message)) {
      hear_batch(client, std::get<Batch>(std::move(*message)));
      return true;
    }
  } else if (std::holds_alternative<Hello>(*message) && !client.member && !has_roster_) {
    client.member = std::get<Hello>(*message).member;
    if (!refusal_) queue({client.rank(), std::get<Hello>(std::move(*message))});
    return true;
  } else if (std::holds_alternative<GivingUp>(*message)) {
    if (!progress_.empty() && !is_settled()) client.channel.say(progress_);
    client.asks = true;
    queue({client.rank(), GivingUp{}});
    return true;
  } else if (std::holds_alternative<Failed>(*message) && client.member) {
    client.asks = true;
    queue({client.rank(), std::get<Failed>(std::move(*message))});
    return true;
  }
  if (!std::holds_alternative<Farewell>(*message) || !has_roster_) return false;
  client.is_leaving = true;
  if (!end_) end_ = Deadline::after(kStoppedTime);
  return true;
}

void Collector::hear_batch(Client& client, Batch batch) {
  for (Passed& passed : batch.words) {
    client.ranks.insert(passed.rank);
    if (auto* hello = std::get_if<Hello>(&passed.word)) {
      if (std::exchange(passed.agrees, false)) hello->agreement = client.agreement;
      client.agreement = hello->agreement;
    }
    client.asks = client.asks || std::holds_alternative<GivingUp>(passed.word) || std::holds_alternative<Failed>(passed.word);
    queue(std::move(passed));
  }
}

void Collector::queue(Passed passed) {
  const bool asks = std::holds_alternative<GivingUp>(passed.word) || std::holds_alternative<Failed>(passed.word);
  if (asks && !answer_due_) answer_due_ = Deadline::after(kParentTime);
  const bool urgent = is_urgent(passed);
  queued_.push_back(std::move(passed));
  const auto wanted = Deadline::after(urgent ? 0ms : wait_for_more());
  due_ = due_ ? Deadline{std::min(due_->at, wanted.at)} : wanted;
}

// Ranks that come one by one, for long, do not cost their parents a message each.
std::chrono::milliseconds Collector::wait_for_more() const {
  if (kFewerThan * queued_.size() >= passed_on_) return kLeastWait;
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
  return std::clamp<std::chrono::milliseconds>(passed / kPartOfTime, kLeastWait, kLongestWait);
}

// A next batch waits until the kernel has taken the one before it.
void Collector::pass_on() {
  if (!due_ || !due_->passed() || !parent_ || parent_->pending() > 0) return;
  Batch batch;
  if (!std::exchange(has_come_, true))
    batch.collects = Collects{tree_acceptor_ ? to_text(*address_of(seat_.listener.get())) : std::string(), is_astray_};
  const auto end = queued_.begin() + static_cast<ptrdiff_t>(std::min(queued_.size(), kMostPassedOn));
  for (auto passed = queued_.begin(); passed != end; ++passed) {
    if (auto* hello = std::get_if<Hello>(&passed->word)) {
      passed->agrees = agreement_ == hello->agreement;
      agreement_ = hello->agreement;
    }
    batch.words.push_back(*passed);
    // The root may yet send this collector to another parent.
    if (!is_settled()) said_.push_back(std::move(*passed));
  }
  passed_on_ += batch.words.size();
  queued_.erase(queued_.begin(), end);
  if (queued_.empty()) due_.reset();
  parent_->say(std::make_shared<const std::string>(encode(std::move(batch))));
  // The next poll sends what the kernel does not take now.
  (void)parent_->flush();
}

void Collector::attend_parent() {
  const Result<void> pumped = parent_->pump();
  while (const std::optional<std::string> bytes = parent_->hear()) hear_parent(*bytes);
  if (place_)
    move();
  else if (!pumped)
    lose_parent(pumped.error().message);
}

void Collector::lose_parent(const std::string& why) {
  parent_.reset();
  due_.reset();
  if (!refusal_) refuse(encode(LostWay{whom_, why}));
}

void Collector::hear_parent(const std::string& bytes) {
  std::optional<Message> message = decode(bytes);
  if (!message) return;
  answer_due_.reset();
  if (std::holds_alternative<Progress>(*message)) {
    progress_ = bytes;
    for (Client& client : clients_)
      if (client.asks || client.collects) client.channel.say(bytes);
  } else if (std::holds_alternative<Query>(*message)) {
    queue({seat_.rank, Present{}});
    for (const int rank : left_) queue({rank, Present{}});
    for (Client& client : clients_)
      if (client.collects) client.channel.say(bytes);
  } else if (std::holds_alternative<PlaceInTree>(*message)) {
    if (!is_settled()) place_ = std::get<PlaceInTree>(std::move(*message));
  } else if (std::holds_alternative<Roster>(*message)) {
    if (!is_settled()) pass_on_roster(bytes, std::get<Roster>(*message));
  } else if (const auto* lost = std::get_if<LostWay>(&*message); lost != nullptr && lost->why.empty()) {
    tell_who_is_silent(*lost);
  } else if (lost != nullptr || std::holds_alternative<Refusal>(*message)) {
    refuse(bytes);
  }
}

void Collector::tell_who_is_silent(const LostWay& lost) {
  for (Client& client : clients_)
    if (client.asks) client.channel.say(encode(lost));
}

// A parent that cannot be reached is no reason to fail: the root takes this collector itself.
void Collector::move() {
  const PlaceInTree place = *std::exchange(place_, std::nullopt);
  answer_due_.reset();
  if (std::optional<Channel> parent = reach(*address_from(place.address), place.rank)) {
    whom_ = place.whom;
    begin_with(std::move(*parent));
  } else if (std::optional<Channel> root = reach(seat_.id.root, kRootRank)) {
    is_astray_ = true;
    begin_with(std::move(*root));
  } else {
    return lose_parent("it cannot be reached again");
  }
  queued_.insert(queued_.begin(), std::make_move_iterator(said_.begin()), std::make_move_iterator(said_.end()));
  said_.clear();
  due_ = Deadline::after(0ms);
  attend_parent();
}

std::optional<Channel> Collector::reach(const Address& address, int rank) const {
  const Deadline until = Deadline::after(kMostForParent);
  Connection connection = connect_tcp(address, until);
  if (!connection.socket) return std::nullopt;
  Channel channel(std::move(connection.socket), Conversation(Role::connects, seat_.id.key, {seat_.rank}));
  if (!channel.await_open(until) || channel.peer().rank != rank || channel.peer().version != kOwnVersion) return std::nullopt;
  return channel;
}

// A rank that is not in the roster came too late.
void Collector::pass_on_roster(const std::string& bytes, const Roster& roster) {
  roster_ = std::make_shared<const std::string>(bytes);
  memory_.emplace(roster_);
  const auto is_listed = [&](const Client& client) {
    if (client.collects) return true;
    if (!client.member || client.rank() < 0 || std::cmp_greater_equal(client.rank(), roster.members.size())) return false;
    const Member& listed = roster.members[static_cast<size_t>(client.rank())];
    return listed.pid == client.member->pid && listed.listener == client.member->listener;
  };
  clients_.remove_if([&](const Client& client) { return !is_listed(client); });
  for (Client& client : clients_) {
    if (client.collects)
      client.channel.say(roster_);
    else
      memory_->say_by(client.channel);
    (void)client.channel.flush();
  }
  has_roster_ = true;
  said_ = {};
  close_doors();
}

// This process may end as soon as one of its own ranks has heard, so those are told last. The doors stay open until the rank
// of this collector has come, which the root takes for told when the collector leaves.
void Collector::refuse(const std::string& message) {
  refusal_ = message;
  if (!end_) end_ = Deadline::after(kStoppedTime);
  for (const bool own : {false, true})
    for (Client& client : clients_) {
      if ((client.member && client.member->pid == ::getpid()) != own) continue;
      client.channel.say(message);
      // The next poll sends what the kernel does not take now; it also removes a client that is gone.
      (void)client.channel.flush();
    }
  if (own_has_come_) close_doors();
}

}  // namespace fccl::core
