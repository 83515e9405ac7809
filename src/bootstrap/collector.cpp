// Batches what goes up, and repeats what comes down.
#include "bootstrap/collector.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "bootstrap/say_roster.h"
#include "os/sealed_memory.h"
#include "sockets/socket.h"

namespace fccl::core {
namespace {

std::string address_text(const Descriptor& listener) {
  const auto address = listener ? address_of(listener.get()) : fail(fcclSystemError, "no listener");
  return address ? to_text(*address) : std::string();
}

}  // namespace

Collector::Collector(CollectorSeat seat)
    : rank_(seat.rank),
      parent_(seat.id, seat.rank, seat.nranks, {address_text(seat.listener)}, std::move(seat.root)),
      door_(std::move(seat.door)),
      listener_(std::move(seat.listener)) {
  door_acceptor_.emplace(door_.get(), seat.id.key, Party{rank_});
  if (listener_) tree_acceptor_.emplace(listener_.get(), seat.id.key, Party{rank_});
}

Collector::~Collector() { close_doors(); }

void Collector::close_doors() {
  for (auto* acceptor : {&door_acceptor_, &tree_acceptor_}) acceptor->reset();
  for (Descriptor* listener : {&door_, &listener_}) {
    shut(listener->get());
    listener->close();
  }
}

void Collector::serve() {
  std::vector<pollfd> polled;
  // Its first words may have come with the end of the handshake.
  attend_parent();
  for (; !finished(); parent_.pass_on()) {
    polled.assign(1, parent_.watch());
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
    if (parent_.finds_silence()) tell_who_is_silent({parent_.whom()});
  }
  parent_.say_farewell(roster_ != nullptr);
}

// Ranks that wait at a door which cannot let them in go to the root when it closes, and so do later ones.
bool Collector::is_short_of_descriptors() const {
  return (door_acceptor_ && door_acceptor_->shortage() != 0) || (tree_acceptor_ && tree_acceptor_->shortage() != 0);
}

// Before there is a roster or a failure, ranks may still come.
bool Collector::finished() const {
  if (end_ && end_->passed()) return true;
  return clients_.empty() && !parent_.has_queued() && (roster_ || (refusal_ && (own_has_come_ || !door_acceptor_)));
}

Deadline Collector::patience() const {
  Deadline first = parent_.patience();
  for (const auto& acceptor : {&door_acceptor_, &tree_acceptor_})
    if (*acceptor) first.at = std::min(first.at, (*acceptor)->patience().at);
  if (end_) first.at = std::min(first.at, end_->at);
  return first;
}

void Collector::welcome(std::list<Channel> admitted, bool collect) {
  for (Channel& channel : admitted) {
    if (channel.peer().version != kOwnVersion) continue;
    if (collect) channel.allow(kBatchLimit);
    if (refusal_) channel.say(*refusal_);
    own_has_come_ = own_has_come_ || channel.peer().rank == rank_;
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
    parent_.queue({client->rank(), Gone{pumped.error().message}});
    client->ranks.erase(client->rank());
    for (const int rank : client->ranks) parent_.queue({rank, Gone{pumped.error().message}});
  }
  if (client->is_leaving) left_.insert(client->ranks.begin(), client->ranks.end());
  clients_.erase(client);
}

bool Collector::hear(Client& client, const std::string& bytes) {
  std::optional<Message> message = decode(bytes);
  if (!message) return false;
  if (std::holds_alternative<Farewell>(*message) && roster_) {
    client.is_leaving = true;
    if (!end_) end_ = Deadline::after(kStoppedTime);
    return true;
  }
  if (!client.collects) return hear_rank(client, std::move(*message));
  if (!std::holds_alternative<Batch>(*message)) return false;
  hear_batch(client, std::get<Batch>(std::move(*message)));
  return true;
}

bool Collector::hear_rank(Client& client, Message message) {
  if (std::holds_alternative<Hello>(message) && !client.member && !roster_) {
    client.member = std::get<Hello>(message).member;
    if (!refusal_) parent_.queue({client.rank(), std::get<Hello>(std::move(message))});
  } else if (std::holds_alternative<GivingUp>(message)) {
    if (!progress_.empty() && !is_settled()) client.channel.say(progress_);
    client.asks = true;
    parent_.queue({client.rank(), GivingUp{}});
  } else if (std::holds_alternative<Failed>(message) && client.member) {
    client.asks = true;
    parent_.queue({client.rank(), std::get<Failed>(std::move(message))});
  } else {
    return false;
  }
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
    parent_.queue(std::move(passed));
  }
}

// A parent that cannot be reached does not end the joining: the root takes this collector itself.
void Collector::attend_parent() {
  const Result<void> pumped = parent_.pump();
  while (const std::optional<std::string> bytes = parent_.hear()) hear_parent(*bytes);
  if (const auto place = std::exchange(place_, std::nullopt)) {
    if (!parent_.move(*place)) return lose_parent("it cannot be reached again");
    attend_parent();
  } else if (!pumped) {
    lose_parent(pumped.error().message);
  }
}

void Collector::lose_parent(const std::string& why) {
  parent_.lose();
  if (!refusal_) refuse(encode(LostWay{parent_.whom(), why}));
}

void Collector::hear_parent(const std::string& bytes) {
  std::optional<Message> message = decode(bytes);
  if (!message) return;
  if (std::holds_alternative<Progress>(*message)) {
    progress_ = bytes;
    for (Client& client : clients_)
      if (client.asks || client.collects) client.channel.say(bytes);
  } else if (std::holds_alternative<Query>(*message)) {
    parent_.queue({rank_, Present{}});
    for (const int rank : left_) parent_.queue({rank, Present{}});
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

// A rank that is not in the roster came too late.
void Collector::pass_on_roster(const std::string& bytes, const Roster& roster) {
  const auto is_listed = [&](const Client& client) {
    if (client.collects) return true;
    if (!client.member || client.rank() < 0 || std::cmp_greater_equal(client.rank(), roster.members.size())) return false;
    const Member& listed = roster.members[static_cast<size_t>(client.rank())];
    return listed.pid == client.member->pid && listed.listener == client.member->listener;
  };
  clients_.remove_if([&](const Client& client) { return !is_listed(client); });
  close_doors();
  roster_ = std::make_shared<const std::string>(bytes);
  memory_ = sealed_memory("fccl-roster", bytes);
  for (Client& client : clients_) {
    say_roster(client.channel, roster_, client.collects ? -1 : memory_.get());
    (void)client.channel.flush();
  }
  parent_.stay();
}

// This process may end as soon as one of its own ranks has heard, so those are told last. The doors stay open until the rank
// of this collector has come, which the root takes for told when the collector leaves.
void Collector::refuse(const std::string& message) {
  refusal_ = message;
  parent_.stay();
  if (!end_) end_ = Deadline::after(kStoppedTime);
  for (const bool own : {false, true})
    for (Client& client : clients_) {
      if ((client.member && client.member->pid == ::getpid()) != own) continue;
      // A rank that gives up now tells who is missing; one that has the roster misses nobody.
      if (client.member && !client.asks && !roster_ && !progress_.empty()) client.channel.say(progress_);
      client.channel.say(message);
      // The next poll sends what the kernel does not take now; it also removes a client that is gone.
      (void)client.channel.flush();
    }
  if (own_has_come_) close_doors();
}

}  // namespace fccl::core
