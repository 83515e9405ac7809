// Judges hellos, sends the roster, and tells every rank of the first failure.
#include "bootstrap/rendezvous.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "bootstrap/say_roster.h"
#include "discovery/host_identity.h"
#include "os/error_text.h"
#include "os/sealed_memory.h"
#include "sockets/socket.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// Every report goes to all ranks, so each comes after a longer time than the last one: what init says must not grow with its
// time.
constexpr auto kFirstReport = 100ms;
constexpr int kLongerByFactor = 10;

bool is_this_process(const Member& member) { return member.pid == ::getpid() && member.host_name == host_name(); }

tl::unexpected<Error> nonsense() { return fail(fcclInvalidUsage, "it sent a message that makes no sense here"); }

bool possible(int nranks) { return nranks >= 1 && nranks <= kRankLimit; }

// Returns the first lines in which two agreements differ.
std::pair<std::string_view, std::string_view> first_difference(std::string_view a, std::string_view b) {
  while (true) {
    const std::string_view line_a = a.substr(0, a.find('\n'));
    const std::string_view line_b = b.substr(0, b.find('\n'));
    if (line_a != line_b || (a.empty() && b.empty())) return {line_a, line_b};
    a.remove_prefix(std::min(a.size(), line_a.size() + 1));
    b.remove_prefix(std::min(b.size(), line_b.size() + 1));
  }
}

}  // namespace

std::string Rendezvous::Guest::name() const { return member ? describe(*member) : fmt::format("rank {}", rank); }

Rendezvous::Rendezvous(Bootstrap bootstrap)
    : bootstrap_(std::move(bootstrap)),
      acceptor_(bootstrap_.listener.get(), bootstrap_.id.key, {kRootRank}),
      until_report_(kFirstReport) {
  if (bootstrap_.door) local_acceptor_.emplace(bootstrap_.door.get(), bootstrap_.id.key, Party{kRootRank});
}

Rendezvous::~Rendezvous() {
  shut(bootstrap_.listener.get());
  shut(bootstrap_.door.get());
}

void Rendezvous::serve() {
  std::vector<pollfd> polled;
  while (!finished()) {
    move_on();
    polled.clear();
    if (!complete()) acceptor_.watch(polled);
    const size_t of_acceptor = polled.size();
    if (!complete() && local_acceptor_) local_acceptor_->watch(polled);
    const size_t of_both = polled.size();
    for (const PendingClient& client : clients_) polled.push_back({client.channel.socket(), client.channel.events(), 0});
    poll_until(polled, patience());
    if (of_acceptor > 0 && (polled.front().revents & POLLHUP) != 0) return withdraw();
    auto next = clients_.begin();
    for (const pollfd& entry : std::span(polled).subspan(of_both)) {
      const auto client = next++;
      if (entry.revents != 0) attend(client);
    }
    if (of_acceptor > 0) welcome(acceptor_.admit(std::span(polled).first(of_acceptor)), false);
    if (of_both > of_acceptor) welcome(local_acceptor_->admit(std::span(polled).first(of_both).subspan(of_acceptor)), true);
    if (const int error = shortage(); error != 0 && of_acceptor > 0)
      fail_all(system_error(error), fmt::format("the root (process {} on {}) cannot take another connection: {}, {}",
                                                ::getpid(), host_name(), error_text(error), so_far()));
  }
}

int Rendezvous::shortage() const {
  const int error = acceptor_.shortage();
  return error == 0 && local_acceptor_ ? local_acceptor_->shortage() : error;
}

// The listener was shut: the rank that opened this bootstrap will not join.
void Rendezvous::withdraw() {
  fail_all(fcclRemoteError, "the rank that opened the bootstrap could not join");
  refuse_all();
}

bool Rendezvous::finished() const {
  if (end_ && end_->passed()) return true;
  if (!clients_.empty()) return false;
  if (complete()) return true;
  if (!failure_ || !terms_) return false;
  const auto aware = std::distance(aware_.lower_bound(0), aware_.lower_bound(most_ranks_));
  return std::cmp_equal(aware, most_ranks_);
}

Deadline Rendezvous::patience() const {
  Deadline first = acceptor_.patience();
  if (local_acceptor_) first.at = std::min(first.at, local_acceptor_->patience().at);
  if (end_) first.at = std::min(first.at, end_->at);
  if (const auto asked_until = tree_.patience()) first.at = std::min(first.at, asked_until->at);
  if (progress_due_) first.at = std::min(first.at, progress_due_->at);
  return first;
}

void Rendezvous::move_on() {
  if (terms_ && !failure_ && !complete() && std::cmp_equal(hellos_.size(), terms_->nranks)) {
    roster_ = std::make_shared<const std::string>(encode(roster_of(hellos_)));
    memory_ = sealed_memory("fccl-roster", *roster_);
    close_door();
  }
  if (progress_due_ && progress_due_->passed()) report_progress();
  conclude();
  if (failure_) return refuse_all();
  if (complete()) tell_roster();
}

// All ranks are here: any further connection is one too many.
void Rendezvous::close_door() {
  shut(bootstrap_.listener.get());
  acceptor_.clear();
  local_acceptor_.reset();
  shut(bootstrap_.door.get());
  bootstrap_.door.close();
  for (PendingClient& client : clients_)
    if (!client.has_joined() && !client.is_of_later_call && !bootstrap_.excluded.empty()) send_away(client);
  clients_.remove_if([](const PendingClient& client) { return !client.has_joined(); });
}

void Rendezvous::welcome(std::list<Channel> admitted, bool is_local) {
  for (Channel& channel : admitted) {
    const Party peer = channel.peer();
    channel.allow(kBatchLimit);
    clients_.push_back({std::move(channel), {peer.rank}, is_local});
    if (peer.version != kOwnVersion) fail_all(fcclInvalidUsage, version_difference(peer, {kRootRank}));
  }
}

// This process may end as soon as one of its own ranks has heard, so those are told last.
void Rendezvous::refuse_all() {
  for (const bool own : {false, true})
    for (PendingClient& client : clients_) {
      if (client.refused || client.channel.peer().version != kOwnVersion) continue;
      // A client that has not said hello may be of a later call, and says it next.
      if (!client.has_joined() && !bootstrap_.excluded.empty()) continue;
      if ((client.self.member && is_this_process(*client.self.member)) != own) continue;
      client.channel.say(encode(Refusal{*failure_}));
      client.refused = true;
      // The next poll sends what the kernel does not take now; it also removes a client that is gone.
      (void)client.channel.flush();
    }
}

// Each client gets its own as soon as that is sealed. The next poll sends what the kernel does not take now; it also removes a
// client that is gone.
void Rendezvous::tell_roster() {
  for (PendingClient& client : clients_) {
    if (std::exchange(client.has_roster, true)) continue;
    say_roster(client.channel, roster_, client.is_local ? memory_.get() : -1);
    (void)client.channel.flush();
  }
}

void Rendezvous::attend(std::list<PendingClient>::iterator client) {
  Result<void> pumped = client->channel.pump();
  while (std::optional<std::string> bytes = client->channel.hear())
    if (Result<void> heard = hear(*client, *bytes); !heard) pumped = std::move(heard);
  if (pumped) return;
  if (!client->is_of_later_call && !client->is_sent_on) {
    lose(client->self, pumped.error().message, client->is_leaving);
    if (failure_)
      for (const auto& [rank, guest] : client->guests) aware_.insert(rank);
  }
  clients_.erase(client);
}

// A rank has left, or will not be heard any more.
void Rendezvous::lose(const Guest& guest, const std::string& why, bool is_leaving) {
  if (!complete())
    fail_all(MessageKind::left_in_init, fmt::format("{} left while joining ({}), {}", guest.name(), why, so_far()));
  else if (!is_leaving)
    fail_all(MessageKind::died, fmt::format("{} ended before the communicator was ready: {}", guest.name(), why));
  if (failure_) aware_.insert(guest.rank);
}

Result<void> Rendezvous::hear(PendingClient& client, const std::string& bytes) {
  std::optional<Message> message = decode(bytes);
  if (!message) return nonsense();
  if (std::holds_alternative<Batch>(*message)) {
    auto& [words, collects] = std::get<Batch>(*message);
    if (!client.collects && (!collects || client.self.member)) return nonsense();
    if (client.is_sent_on || (collects && !place(client, std::move(*collects)))) return {};
    for (Passed& passed : words) hear_of(client, std::move(passed));
    return {};
  }
  if (std::holds_alternative<Hello>(*message) && !client.has_joined() && !complete()) {
    auto& hello = std::get<Hello>(*message);
    if (std::ranges::count(bootstrap_.excluded, hello.origin) > 0)
      send_away(client);
    else
      judge(client.self, std::move(hello));
    return {};
  }
  if (std::holds_alternative<GivingUp>(*message)) {
    give_up(client, client.self);
    return {};
  }
  if (std::holds_alternative<Failed>(*message) && client.self.member) {
    hear_of_failure(client.self, std::get<Failed>(*message).error);
    return {};
  }
  if (std::holds_alternative<Farewell>(*message) && complete()) {
    client.is_leaving = true;
    // It will not answer any more, and need not.
    for (const auto& [rank, guest] : client.guests) tree_.hear_from(rank);
    if (!end_) end_ = Deadline::after(kStoppedTime);
    return {};
  }
  return nonsense();
}

// Words that come too late to count are left out: the collector could not know.
void Rendezvous::hear_of(PendingClient& client, Passed passed) {
  Guest& guest = client.guests[passed.rank];
  guest.rank = passed.rank;
  if (auto* hello = std::get_if<Hello>(&passed.word)) {
    if (passed.agrees) hello->agreement = client.agreement;
    client.agreement = hello->agreement;
    if (complete()) return;
    judge(guest, std::move(*hello));
    if (guest.rank == client.self.rank) client.self = guest;
  } else if (std::holds_alternative<GivingUp>(passed.word)) {
    give_up(client, guest);
  } else if (const auto* failed = std::get_if<Failed>(&passed.word)) {
    hear_of_failure(guest, failed->error);
  } else if (const auto* gone = std::get_if<Gone>(&passed.word)) {
    lose(guest, gone->why, false);
  } else {
    tree_.hear_from(passed.rank);
  }
}

void Rendezvous::give_up(PendingClient& client, const Guest& guest) {
  if (complete()) return;
  if (terms_) client.channel.say(progress());
  inquire(
      {MessageKind::late_for_init, fmt::format("{} gave up waiting after its FCCL_INIT_TIMEOUT, {}", guest.name(), so_far())});
}

void Rendezvous::hear_of_failure(const Guest& guest, const Error& error) {
  const Error told{error.code, fmt::format("{} (told by {})", error.message, guest.name())};
  if (error.code == fcclTimeout) return inquire(told);
  fail_all(told.code, told.message);
}

// Ranks that miss others may miss them since a collector is stopped.
void Rendezvous::inquire(Error failure) {
  if (failure_ || tree_.patience()) return;
  if (!tree_.inquire(failure)) return fail_all(failure.code, std::move(failure.message));
  for (PendingClient& client : clients_)
    if (client.collects) client.channel.say(encode(Query{}));
}

void Rendezvous::conclude() {
  std::optional<int> silent;
  auto failure = tree_.conclude(silent);
  if (!failure) return;
  if (silent)
    failure->message = fmt::format("{}, by which ranks of its host reach the root, does not answer, it may be stopped ({})",
                                   name_of(*silent), failure->message);
  fail_all(failure->code, std::move(failure->message));
}

std::string Rendezvous::name_of(int rank) const {
  const auto found = hellos_.find(rank);
  return found == hellos_.end() ? fmt::format("rank {}", rank) : describe(found->second.member);
}

// Returns false if the collector has to say its words at another place.
bool Rendezvous::place(PendingClient& client, Collects collects) {
  client.collects = true;
  // After a failure it will be told so here.
  collects.is_astray = collects.is_astray || failure_;
  auto place = tree_.place(client.self.rank, std::move(collects));
  if (!place) return true;
  place->whom = name_of(place->rank);
  client.is_sent_on = true;
  client.channel.say(encode(*place));
  // The next poll sends what the kernel does not take now; it also removes a client that is gone.
  (void)client.channel.flush();
  return false;
}

void Rendezvous::judge(Guest& guest, Hello hello) {
  hello.member.rank = guest.rank;
  if (!terms_ && possible(hello.nranks)) terms_ = Terms{hello.member, hello.nranks, hello.agreement};
  if (possible(hello.nranks)) most_ranks_ = std::max(most_ranks_, hello.nranks);
  guest.member = hello.member;
  if (hello.failure) {
    fail_all(hello.failure->code, fmt::format("{} could not join: {}", guest.name(), hello.failure->message));
    return;
  }
  if (std::string text = objection(hello); !text.empty()) {
    fail_all(MessageKind::joins_differ, std::move(text));
    return;
  }
  // The terms have the agreement, and as many copies as there are ranks would take megabytes.
  hello.agreement = {};
  hello.member.serves = is_this_process(hello.member);
  hellos_.emplace(guest.rank, std::move(hello));
  if (!progress_due_) progress_due_ = Deadline::after(until_report_);
}

void Rendezvous::send_away(PendingClient& client) {
  client.is_of_later_call = true;
  client.channel.say(encode(Later{}));
  // The next poll sends what the kernel does not take now; it also removes a client that is gone.
  (void)client.channel.flush();
}

std::string Rendezvous::objection(const Hello& hello) const {
  const Member& member = hello.member;
  if (!possible(hello.nranks))
    return fmt::format("{} wants a communicator of {} ranks; there can be 1 to {}", describe(member), hello.nranks, kRankLimit);
  // The agreement is compared first, since it may explain why the numbers differ.
  if (hello.agreement != terms_->agreement) {
    const auto [theirs, first] = first_difference(hello.agreement, terms_->agreement);
    return fmt::format(R"({} has "{}" where {} has "{}": this must be equal on all ranks)", describe(member), theirs,
                       describe(terms_->by), first);
  }
  if (hello.nranks != terms_->nranks)
    return fmt::format("{} joins a communicator of {} ranks, but {} joins one of {}: every rank must give the same number",
                       describe(member), hello.nranks, describe(terms_->by), terms_->nranks);
  if (member.rank < 0 || member.rank >= hello.nranks)
    return fmt::format("{} is out of range: a communicator of {} has ranks 0 to {}", describe(member), hello.nranks,
                       hello.nranks - 1);
  if (const auto twin = hellos_.find(member.rank); twin != hellos_.end())
    return fmt::format("rank {} joined twice, from {} and from {}: every process or thread needs a rank of its own",
                       member.rank, describe(twin->second.member), describe(member));
  return {};
}

// The first reason stands.
void Rendezvous::fail_all(MessageCode code, std::string message) {
  if (failure_) return;
  failure_ = Error{code, std::move(message)};
  // Ranks that are still to come need descriptors to be told.
  acceptor_.spend_spares();
  if (local_acceptor_) local_acceptor_->spend_spares();
  end_ = Deadline::after(kStoppedTime);
  progress_due_.reset();
}

void Rendezvous::report_progress() {
  progress_due_.reset();
  if (failure_ || complete()) return;
  until_report_ *= kLongerByFactor;
  const std::string said = progress();
  for (PendingClient& client : clients_)
    if (client.has_joined()) client.channel.say(said);
}

std::string Rendezvous::progress() const { return encode(Progress{static_cast<int>(hellos_.size()), missing()}); }

std::string Rendezvous::so_far() const {
  if (!terms_) return "before any rank had joined";
  if (std::cmp_equal(hellos_.size(), terms_->nranks)) return fmt::format("after all {} had joined", terms_->nranks);
  return fmt::format("when {} of {} had joined (missing: {})", hellos_.size(), terms_->nranks, missing());
}

std::string Rendezvous::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < terms_->nranks; ++rank)
    if (!hellos_.contains(rank)) ranks.push_back(rank);
  return list_ranks(ranks);
}

}  // namespace fccl::core
