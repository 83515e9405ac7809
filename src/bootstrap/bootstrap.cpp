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
#include "bootstrap/roster_memory.h"
#include "channels/channel.h"
#include "discovery/host_identity.h"
#include "os/error_text.h"
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
// Longest time for which a rank waits at the door of a root of its host before it tries TCP.
constexpr auto kMostAtDoor = 5s;

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
  Joiner(const JoinRequest& request, WaitLimit limit) : request_(request), limit_(std::move(limit)) {}

  Result<Joined> join();
  void decline(const Error& why);

 private:
  Result<Hello> get_ready();
  Result<Hello> make_hello() const;
  Result<void> listen();
  Result<Channel> reach_root();
  Result<std::optional<Channel>> pass_door();
  Result<Channel> reach_by_tcp();
  Result<void> check_root(const Channel& channel) const;
  void tell(Channel& channel, const Error& why, Deadline deadline) const;
  Result<void> rest(const std::string& observed);
  Result<std::optional<std::vector<Member>>> await_roster(Channel& channel);
  Result<std::vector<Member>> shared_roster(Channel& channel, size_t bytes) const;
  Result<std::vector<Member>> members_of(Roster roster) const;
  bool give_up(Channel& channel, const Message& why);
  // A joiner without a cancel check need not wake up before the deadline.
  Deadline next_look() const { return limit_.cancel_check ? limit_.next_look() : limit_.deadline; }
  std::string name() const { return fmt::format("rank {}", request_.rank); }
  std::string root() const { return fmt::format("the root at {}", root_text(request_.id)); }
  std::string other_interfaces() const;
  tl::unexpected<Error> timed_out(const std::string& observed) const;

  const JoinRequest& request_;
  WaitLimit limit_;
  Descriptor listener_;
  Descriptor tcp_listener_;
  Clock::time_point begin_ = Clock::now();
  Progress progress_;
  SpareDescriptor spare_;          // descriptor that is given up so that the root can be told
  std::optional<Error> shortage_;  // the lack of descriptors that spare_ was spent for
};

Result<Joined> Joiner::join() {
  while (true) {
    // The root comes first, so that the other ranks can be told of any later failure.
    FCCL_TRY_ASSIGN(Channel channel, reach_root());
    const Result<Hello> hello = get_ready();
    if (!hello) {
      tell(channel, hello.error(), Deadline::after(kDeclineTime));
      return fail(hello.error());
    }
    channel.say(encode(*hello));
    FCCL_TRY_ASSIGN(auto members, await_roster(channel));
    if (members) {
      Presence presence(std::move(channel), server_name(*members, root_text(request_.id)));
      return Joined{std::move(*members), std::move(listener_),     request_.id,
                    request_.rank,       std::move(tcp_listener_), std::move(presence)};
    }
    FCCL_TRY(rest(fmt::format("{} is still in an earlier call, without this rank", root())));
  }
}

// Lets a rank that has to come again do so after a pause, unless it is cancelled or late.
Result<void> Joiner::rest(const std::string& observed) {
  if (request_.awaits_root) FCCL_TRY(limit_.check_cancelled());
  if (Deadline::after(ConnectPatience::kPause).at >= limit_.deadline.at) return timed_out(observed);
  std::this_thread::sleep_for(ConnectPatience::kPause);
  return {};
}

void Joiner::decline(const Error& why) {
  if (Result<Channel> channel = reach_root()) tell(*channel, why, limit_.deadline);
}

// It waits for the answer: the root may live in this process, and has then told the others before the process ends.
void Joiner::tell(Channel& channel, const Error& why, Deadline deadline) const {
  channel.say(encode(Hello{{request_.rank, ::getpid(), {}, host_name(), {}}, request_.nranks, {}, why, request_.origin}));
  (void)channel.await_message(deadline);
}

Result<Hello> Joiner::get_ready() {
  if (shortage_) return fail(*shortage_);
  FCCL_TRY(listen());
  return make_hello();
}

// The rank listens before any peer can learn its address: a peer that connects finds a listener, or finds this rank dead.
Result<void> Joiner::listen() {
  FCCL_TRY_ASSIGN(Descriptor local, listen_local(std::clamp(request_.nranks, kFewestInLine, SOMAXCONN)));
  listener_ = std::move(local);
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

// Lists the other interfaces by which other hosts might have reached the root, if the root is on this host.
std::string Joiner::other_interfaces() const {
  Result<std::vector<InterfaceAddress>> addresses = interface_addresses();
  Address root = request_.id.root;
  root.port = 0;
  if (!addresses || std::erase_if(*addresses, [&](const auto& each) { return each.address == root; }) == 0) return "";
  std::erase_if(*addresses, [](const auto& each) { return each.is_loopback; });
  if (addresses->empty()) return "";
  return fmt::format(" The root listens at {}; this host also has {}: FCCL_SOCKET_IFNAME decides.", root_text(request_.id),
                     to_text(*addresses));
}

tl::unexpected<Error> Joiner::timed_out(const std::string& observed) const {
  const auto waited = std::chrono::duration<double>(Clock::now() - begin_).count();
  return fail(MessageKind::late_for_init,
              fmt::format("{} waited {:.1f} s for all {} ranks of its communicator: {}. Was every rank started, with "
                          "this unique id?{} FCCL_INIT_TIMEOUT decides how long to wait",
                          name(), waited, request_.nranks, observed, other_interfaces()));
}

// Whatever is wrong at the door of a root of this host, a rank can still reach the root by TCP.
Result<Channel> Joiner::reach_root() {
  FCCL_TRY_ASSIGN(auto channel, pass_door());
  if (!channel) return reach_by_tcp();
  return std::move(*channel);
}

// Returns no channel if the root is of another host, or does not let this rank in.
Result<std::optional<Channel>> Joiner::pass_door() {
  // host_identity reads files.
  if (lack_of_descriptors(1) != 0) return std::nullopt;
  Connection connection = connect_local(door_name(request_.id, host_identity(request_.host_override)), kLookInterval);
  if (!connection.socket) return std::nullopt;
  const auto now = Clock::now();
  const Deadline until{std::min(now + kMostAtDoor, now + (limit_.deadline.at - now) / 2)};
  Channel channel(std::move(connection.socket), Conversation(Role::connects, request_.id.key, {request_.rank}));
  while (!channel.open()) {
    const Result<void> opened = channel.await_open({std::min(next_look().at, until.at)});
    if (!opened && (opened.error().code != fcclTimeout || until.passed())) return std::nullopt;
    if (request_.awaits_root) FCCL_TRY(limit_.check_cancelled());
  }
  FCCL_TRY(check_root(channel));
  return channel;
}

Result<void> Joiner::check_root(const Channel& channel) const {
  if (channel.peer().rank != kRootRank)
    return fail(fcclInvalidUsage,
                fmt::format("{} cannot join: at {} listens a rank, not the root", name(), root_text(request_.id)));
  if (channel.peer().version != kOwnVersion) return fail(fcclInvalidUsage, version_difference({request_.rank}, channel.peer()));
  return {};
}

// The listener is older than the id, so a refused connection is final unless the request awaits the root. A connection that is
// closed within the handshake is not final: in a flood of strangers the root drops the oldest one.
Result<Channel> Joiner::reach_by_tcp() {
  ConnectPatience patience;
  while (true) {
    Connection connection = connect_tcp(request_.id.root, {std::min(limit_.deadline.at, Deadline::after(patience.next()).at)});
    std::string observed = fmt::format("{} cannot be reached: {}", root(), error_text(connection.error));
    if (connection.error == ECONNREFUSED && !request_.awaits_root)
      return fail(MessageKind::nobody_listens,
                  fmt::format("{} cannot join: nobody listens at {}. The process that called fcclGetUniqueId has "
                              "ended, or the id has made its communicator already (each needs an id of its own)",
                              name(), root_text(request_.id)));
    if (is_short_of_descriptors(connection.error)) {
      shortage_ = {system_error(connection.error), fmt::format("{} cannot join: it cannot make a socket to reach {}: {}",
                                                               name(), root(), error_text(connection.error))};
      if (spare_.spend()) continue;
      return fail(*shortage_);
    }
    if (connection.socket) {
      Channel channel(std::move(connection.socket), Conversation(Role::connects, request_.id.key, {request_.rank}));
      const Result<void> opened = channel.await_open(limit_.deadline);
      if (opened) FCCL_TRY(check_root(channel));
      if (opened) return channel;
      if (opened.error().code == fcclInvalidUsage)
        return fail(opened.error().code,
                    fmt::format("{} cannot join at {}: {}", name(), root_text(request_.id), opened.error().message));
      observed = fmt::format("{} took the connection, then: {}", root(), opened.error().message);
    }
    FCCL_TRY(rest(observed));
  }
}

// Tells the root before this process, which may be the root's, ends, and takes its last word on who is missing. Returns false
// if the root does not answer.
bool Joiner::give_up(Channel& channel, const Message& why) {
  channel.say(encode(why));
  const Deadline told = Deadline::after(kAnswerDelay);
  while (true) {
    const Result<std::string> bytes = channel.await_message(told);
    if (!bytes) return bytes.error().code != fcclTimeout;
    std::optional<Message> message = decode(*bytes);
    if (message && std::holds_alternative<Refusal>(*message)) return true;
    if (message && std::holds_alternative<Progress>(*message)) progress_ = std::get<Progress>(std::move(*message));
  }
}

// Returns nothing if the root serves an earlier call, which leaves this rank out.
Result<std::optional<std::vector<Member>>> Joiner::await_roster(Channel& channel) {
  channel.allow(std::max(kMessageLimit, roster_limit(request_.nranks)));
  while (true) {
    Result<std::string> bytes = channel.await_message(next_look());
    if (!bytes && bytes.error().code == fcclTimeout) {
      const Result<void> wanted = limit_.check_cancelled();
      if (wanted && !limit_.deadline.passed()) continue;
      const bool answered = give_up(channel, wanted ? Message{GivingUp{}} : Message{Failed{wanted.error()}});
      if (!wanted) return fail(wanted.error());
      const std::string known = progress_.joined == 0 ? root() + " has not said who is missing"
                                                      : fmt::format("{} of {} joined, missing: {}", progress_.joined,
                                                                    request_.nranks, progress_.missing);
      return timed_out(answered ? known : fmt::format("{}; {} does not answer any more, it may be stopped", known, root()));
    }
    if (!bytes)
      return fail(MessageKind::root_left,
                  fmt::format("{} joined, but {} did not stay until all {} ranks had: {}. The process that called "
                              "fcclGetUniqueId must live until then",
                              name(), root(), request_.nranks, bytes.error().message));
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
  FCCL_TRY_ASSIGN(const std::string read, read_roster_memory(memory.front(), bytes));
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
