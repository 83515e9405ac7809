// Joins: reaches the root, listens for the ranks of the host, and waits for the roster.
#include "bootstrap/bootstrap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>

#include "bootstrap/messages.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/way_to_root.h"
#include "channels/channel.h"
#include "discovery/host_identity.h"
#include "os/error_text.h"
#include "os/sealed_memory.h"
#include "os/spare_descriptor.h"
#include "os/thread.h"
#include "sockets/listening_address.h"
#include "sockets/network_interface.h"
#include "sockets/socket.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// Connections that may queue at a rank's listener beyond the ranks that it waits for, so that a few strangers do not fill it.
constexpr int kFewestInLine = 128;
// Longest time that a rank which cannot join spends on telling the others.
constexpr auto kDeclineTime = 2s;

// The thread is detached and owns all it uses, so neither exit nor fork meets anything of it.
Result<void> serve_in_background(std::shared_ptr<Rendezvous> rendezvous) {
  FCCL_TRY_ASSIGN(auto thread, start_thread({"fccl-bootstrap", "serves a unique id"},
                                            [served = std::move(rendezvous)] { served->serve(); }));
  thread.detach();
  return {};
}

// One rank on its way into a communicator.
class Joiner {
 public:
  Joiner(const JoinRequest& request, WaitLimit limit) : request_(request), limit_(std::move(limit)), way_(request_, limit_) {}

  Result<Joined> join();
  void decline(const Error& why);

 private:
  Result<Hello> get_ready();
  Result<Hello> make_hello() const;
  Result<void> listen();
  void tell(Channel& channel, const Error& why, Deadline deadline) const;
  Result<std::optional<std::vector<Member>>> await_roster(Channel& channel);
  Result<std::vector<Member>> shared_roster(Channel& channel, size_t bytes) const;
  Result<std::vector<Member>> members_of(Roster roster) const;
  std::string give_up(Channel& channel, const Message& why);
  tl::unexpected<Error> lost(const LostWay& way) const;
  std::string name() const { return way_.name(); }
  std::string root() const { return way_.root(); }

  const JoinRequest& request_;
  WaitLimit limit_;
  Descriptor listener_;
  Descriptor tcp_listener_;
  WayToRoot way_;
  Progress progress_;
};

Result<Joined> Joiner::join() {
  while (true) {
    // The root comes first, so that the other ranks can be told of any later failure.
    FCCL_TRY_ASSIGN(Channel channel, way_.reach(AtEmptyDoor::collect));
    const Result<Hello> hello = get_ready();
    if (!hello) {
      tell(channel, hello.error(), Deadline::after(kDeclineTime));
      return fail(hello.error());
    }
    channel.say(encode(*hello));
    FCCL_TRY_ASSIGN(auto members, await_roster(channel));
    if (members) {
      const std::string root = server_name(*members, root_text(request_.id));
      const int via = channel.peer().rank;
      const bool is_direct = way_.is_direct() || (*members)[static_cast<size_t>(via)].serves;
      Presence presence(std::move(channel), is_direct ? root : describe((*members)[static_cast<size_t>(via)]), root);
      return Joined{std::move(*members), std::move(listener_),     request_.id,
                    request_.rank,       std::move(tcp_listener_), std::move(presence)};
    }
    FCCL_TRY(way_.rest(fmt::format("{} is still in an earlier call, without this rank", root())));
  }
}

void Joiner::decline(const Error& why) {
  if (Result<Channel> channel = way_.reach(AtEmptyDoor::go_on)) tell(*channel, why, limit_.deadline);
}

// It waits for the answer: the root may live in this process, and has then told the others before the process ends.
void Joiner::tell(Channel& channel, const Error& why, Deadline deadline) const {
  channel.say(encode(Hello{{request_.rank, ::getpid(), {}, host_name(), {}}, request_.nranks, {}, why, request_.origin}));
  (void)channel.await_message(deadline);
}

Result<Hello> Joiner::get_ready() {
  if (way_.shortage()) return fail(*way_.shortage());
  FCCL_TRY(listen());
  return make_hello();
}

// The rank listens before any peer can learn its address: a peer that connects finds a listener, or finds this rank dead.
Result<void> Joiner::listen() {
  FCCL_TRY_ASSIGN(Descriptor local, listen_local(std::clamp(request_.nranks, kFewestInLine, SOMAXCONN)));
  listener_ = std::move(local);
  if (request_.rank != 0 && request_.nranks > request_.most_direct) tcp_listener_ = way_.listen_for_others();
  if (request_.rank != 0) return {};
  FCCL_TRY_ASSIGN(const ListeningAddress where, choose_address(request_.settings));
  FCCL_TRY_ASSIGN(Descriptor tcp, listen_at(where, request_.settings));
  tcp_listener_ = std::move(tcp);
  return {};
}

Result<Hello> Joiner::make_hello() const {
  // host_identity reads files; without descriptors it would return another identity.
  if (const int error = lack_of_descriptors(1); error != 0)
    return fail(system_error(error), fmt::format("{} cannot read which host this is: {}", name(), error_text(error)));
  Hello hello{.member = {request_.rank, ::getpid(), 0, host_name(), {}},
              .nranks = request_.nranks,
              .agreement = request_.agreement,
              .origin = request_.origin,
              .host = host_identity(request_.host_override)};
  if (hello.agreement.size() > kAgreementLimit)
    return fail(fcclInternalError,
                fmt::format("the settings to compare take {} bytes, more than {}", hello.agreement.size(), kAgreementLimit));
  if (hello.host.size() > kTextLimit)
    return fail(fcclInvalidUsage, fmt::format("the identity of this host takes {} bytes, more than {}; shorten FCCL_HOST_ID",
                                              hello.host.size(), kTextLimit));
  FCCL_TRY_ASSIGN(std::string name, local_name(listener_.get()));
  hello.member.listener = std::move(name);
  if (!tcp_listener_) return hello;
  FCCL_TRY_ASSIGN(Address address, address_of(tcp_listener_.get()));
  hello.member.address = to_text(address);
  return hello;
}

// Tells the root before this process, which may be the root's, ends, and takes its last word on who is missing. Returns who
// does not answer, "" if nobody.
std::string Joiner::give_up(Channel& channel, const Message& why) {
  channel.say(encode(why));
  const Deadline told = Deadline::after(kAnswerDelay);
  std::string silent = way_.whom();
  while (true) {
    const Result<std::string> bytes = channel.await_message(told);
    if (!bytes) return bytes.error().code == fcclTimeout ? silent : std::string();
    std::optional<Message> message = decode(*bytes);
    if (message && std::holds_alternative<Refusal>(*message)) return {};
    if (message && std::holds_alternative<Progress>(*message)) progress_ = std::get<Progress>(std::move(*message));
    // A collector answers at once, so from now on those above it are to blame.
    silent = root();
    if (const auto* lost = message ? std::get_if<LostWay>(&*message) : nullptr; lost != nullptr && !lost->whom.empty())
      silent = lost->whom;
  }
}

// Tells why the roster will not come.
tl::unexpected<Error> Joiner::lost(const LostWay& way) const {
  if (!way.whom.empty())
    return fail(MessageKind::left_in_init,
                fmt::format("{}, by which {} reaches the root, left while ranks joined: {}", way.whom, name(), way.why));
  return fail(MessageKind::root_left, way_.root_left(way.why));
}

// Returns nothing if the root serves an earlier call, which leaves this rank out.
Result<std::optional<std::vector<Member>>> Joiner::await_roster(Channel& channel) {
  channel.allow(std::max(kMessageLimit, roster_limit(request_.nranks)));
  while (true) {
    Result<std::string> bytes = channel.await_message(way_.next_look());
    if (!bytes && bytes.error().code == fcclTimeout) {
      const Result<void> wanted = limit_.check_cancelled();
      if (wanted && !limit_.deadline.passed()) continue;
      const std::string silent = give_up(channel, wanted ? Message{GivingUp{}} : Message{Failed{wanted.error()}});
      if (!wanted) return fail(wanted.error());
      const std::string known = progress_.joined == 0 ? root() + " has not said who is missing"
                                                      : fmt::format("{} of {} joined, missing: {}", progress_.joined,
                                                                    request_.nranks, progress_.missing);
      return way_.timed_out(silent.empty() ? known
                                           : fmt::format("{}; {} does not answer any more, it may be stopped", known, silent));
    }
    if (!bytes) return lost({way_.is_direct() ? std::string() : way_.whom(), bytes.error().message});
    std::optional<Message> message = decode(*bytes);
    if (message && std::holds_alternative<Refusal>(*message)) {
      const Error& error = std::get<Refusal>(*message).error;
      return fail(error.code, fmt::format("{} cannot join: {}", name(), error.message));
    }
    if (message && std::holds_alternative<Progress>(*message)) {
      progress_ = std::get<Progress>(std::move(*message));
    } else if (message && std::holds_alternative<SharedRoster>(*message)) {
      channel.allow(kMessageLimit);
      return shared_roster(channel, std::get<SharedRoster>(*message).bytes);
    } else if (message && std::holds_alternative<LostWay>(*message)) {
      const auto& way = std::get<LostWay>(*message);
      if (!way.why.empty()) return lost(way);
    } else if (message && std::holds_alternative<Later>(*message)) {
      return std::nullopt;
    } else if (message && std::holds_alternative<Roster>(*message)) {
      channel.allow(kMessageLimit);
      return members_of(std::get<Roster>(std::move(*message)));
    } else {
      return fail(fcclInternalError, fmt::format("{} sent {} a message that makes no sense", root(), name()));
    }
  }
}

Result<std::vector<Member>> Joiner::shared_roster(Channel& channel, size_t bytes) const {
  const std::vector<Descriptor> memory = channel.take_descriptors();
  if (memory.empty()) {
    const int error = channel.has_lost_descriptors() ? EMFILE : ENODATA;
    return fail(system_error(error), fmt::format("{} cannot take the descriptor of the roster that {} hands out: {}", name(),
                                                 root(), error_text(error)));
  }
  if (bytes > roster_limit(request_.nranks))
    return fail(fcclInternalError, fmt::format("{} sent {} a roster of {} bytes", root(), name(), bytes));
  FCCL_TRY_ASSIGN(const std::string read, read_sealed_memory(memory.front(), bytes));
  std::optional<Message> roster = decode(read);
  if (roster && std::holds_alternative<Roster>(*roster)) return members_of(std::get<Roster>(std::move(*roster)));
  return fail(fcclInternalError, fmt::format("{} sent {} a roster that makes no sense", root(), name()));
}

Result<std::vector<Member>> Joiner::members_of(Roster roster) const {
  if (std::cmp_equal(roster.members.size(), request_.nranks)) return std::move(roster.members);
  return fail(fcclInternalError, fmt::format("{} sent {} a roster of {} ranks, but the communicator has {}", root(), name(),
                                             roster.members.size(), request_.nranks));
}

}  // namespace

Result<Bootstrap> prepare_bootstrap(const Settings& settings) {
  FCCL_TRY_ASSIGN(const ListeningAddress where, choose_address(settings));
  FCCL_TRY_ASSIGN(Descriptor listener, listen_at(where, settings));
  FCCL_TRY_ASSIGN(Address bound, address_of(listener.get()));
  UniqueId id{.root = bound, .interface_name = where.interface_name, .chosen_by = where.by};
  std::array<unsigned char, sizeof(id.generation)> generation{};
  fill_random(generation);
  for (const unsigned char byte : generation) id.generation = id.generation << 8 | byte;
  fill_random(id.key);
  // Without a door the ranks of this host come by TCP.
  Connection door = listen_local_at(door_name(id, host_identity(settings.host_id)), SOMAXCONN);
  return Bootstrap{.id = id, .listener = std::move(listener), .door = std::move(door.socket)};
}

Result<Descriptor> serve_bootstrap(Bootstrap prepared) {
  Descriptor shutter(::fcntl(prepared.listener.get(), F_DUPFD_CLOEXEC, 0));
  if (!shutter)
    return fail(system_error(errno), fmt::format("cannot take a second descriptor of a bootstrap: {}", error_text(errno)));
  FCCL_TRY(serve_in_background(std::make_shared<Rendezvous>(std::move(prepared))));
  return shutter;
}

Result<UniqueId> open_bootstrap(const Settings& settings) {
  FCCL_TRY_ASSIGN(Bootstrap prepared, prepare_bootstrap(settings));
  UniqueId id = prepared.id;
  FCCL_TRY(serve_in_background(std::make_shared<Rendezvous>(std::move(prepared))));
  return id;
}

Result<Joined> join(const JoinRequest& request, WaitLimit limit) { return Joiner(request, std::move(limit)).join(); }

void decline(const JoinRequest& request, const Error& why) { Joiner(request, Deadline::after(kDeclineTime)).decline(why); }

}  // namespace fccl::core
