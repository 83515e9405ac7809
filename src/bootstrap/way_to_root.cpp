// Finds a place in the tree of collectors, or goes past it.
#include "bootstrap/way_to_root.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "bootstrap/collector.h"
#include "discovery/host_identity.h"
#include "os/error_text.h"
#include "os/thread.h"
#include "sockets/listening_address.h"
#include "sockets/network_interface.h"
#include "sockets/socket.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// Longest time for which a rank waits at the door of its host before it tries TCP.
constexpr auto kMostAtDoor = 5s;
constexpr int kPartAtDoor = 4;  // a rank waits so small a part of its time, at most
// A rank that opens a door listens this much later, at most.
constexpr auto kPauseAtDoor = 1ms;
constexpr int kAttemptsAtDoor = 50;
// Descriptors that a rank needs to collect others, rounded up.
constexpr int kForCollecting = 16;

}  // namespace

std::string WayToRoot::name() const { return fmt::format("rank {}", request_.rank); }

std::string WayToRoot::root() const { return fmt::format("the root at {}", root_text(request_.id)); }

Result<void> WayToRoot::rest(const std::string& observed) {
  if (request_.awaits_root) FCCL_TRY(limit_.check_cancelled());
  if (Deadline::after(ConnectPatience::kPause).at >= limit_.deadline.at) return timed_out(observed);
  std::this_thread::sleep_for(ConnectPatience::kPause);
  return {};
}

// Lists the other interfaces by which other hosts might have reached the root, if the root is on this host.
std::string WayToRoot::other_interfaces() const {
  Result<std::vector<InterfaceAddress>> addresses = interface_addresses();
  Address root = request_.id.root;
  root.port = 0;
  if (!addresses || std::erase_if(*addresses, [&](const auto& each) { return each.address == root; }) == 0) return "";
  std::erase_if(*addresses, [](const auto& each) { return each.is_loopback; });
  if (addresses->empty()) return "";
  return fmt::format(" The root listens at {}; this host also has {}: FCCL_SOCKET_IFNAME decides.", root_text(request_.id),
                     to_text(*addresses));
}

tl::unexpected<Error> WayToRoot::timed_out(const std::string& observed) const {
  const auto waited = std::chrono::duration<double>(Clock::now() - begin_).count();
  return fail(MessageKind::late_for_init,
              fmt::format("{} waited {:.1f} s for all {} ranks of its communicator: {}. Was every rank started, with "
                          "this unique id?{} FCCL_INIT_TIMEOUT decides how long to wait",
                          name(), waited, request_.nranks, observed, other_interfaces()));
}

// Whatever is wrong at the door of its host, a rank can still reach the root by TCP.
Result<Channel> WayToRoot::reach(AtEmptyDoor then) {
  collector_.clear();
  FCCL_TRY_ASSIGN(auto channel, pass_door());
  if (!channel && nobody_at_door_ && then == AtEmptyDoor::collect && may_collect()) {
    Connection bound = listen_local_at(door(), SOMAXCONN);
    if (bound.socket) return collect(std::move(bound.socket));
    // Another rank was faster, and may not listen yet.
    for (int attempt = 0; attempt < kAttemptsAtDoor && nobody_at_door_; ++attempt) {
      std::this_thread::sleep_for(kPauseAtDoor);
      FCCL_TRY_ASSIGN(auto later, pass_door());
      if (later) return std::move(*later);
    }
  }
  if (!channel) return reach_by_tcp();
  return std::move(*channel);
}

// Ranks that may have to come again reach the root by themselves.
bool WayToRoot::may_collect() const {
  return request_.nranks > request_.most_direct && request_.origin < 0 && !request_.awaits_root &&
         lack_of_descriptors(kForCollecting) == 0;
}

std::string WayToRoot::door() const { return door_name(request_.id, host_identity(request_.host_override)); }

// Returns no channel if nobody is at the door, or does not let this rank in.
Result<std::optional<Channel>> WayToRoot::pass_door() {
  // host_identity reads files.
  if (lack_of_descriptors(1) != 0) return std::nullopt;
  Connection connection = connect_local(door(), kLookInterval);
  nobody_at_door_ = connection.error == ECONNREFUSED;
  if (!connection.socket) return std::nullopt;
  const auto now = Clock::now();
  const Deadline until{std::min(now + kMostAtDoor, now + (limit_.deadline.at - now) / kPartAtDoor)};
  Channel channel(std::move(connection.socket), Conversation(Role::connects, request_.id.key, {request_.rank}));
  while (!channel.open()) {
    const Result<void> opened = channel.await_open({std::min(next_look().at, until.at)});
    if (!opened && (opened.error().code != fcclTimeout || until.passed())) return std::nullopt;
    if (request_.awaits_root) FCCL_TRY(limit_.check_cancelled());
  }
  const int rank = channel.peer().rank;
  if (rank == kRootRank)
    FCCL_TRY(check_root(channel));
  else
    collector_ = describe(Member{rank, listening_process(channel.socket()), 0, host_name(), {}});
  return channel;
}

// The ranks that come to the door meanwhile wait there.
Result<Channel> WayToRoot::collect(Descriptor door) {
  FCCL_TRY_ASSIGN(Channel root, reach_by_tcp());
  if (shortage_) return root;
  const auto seat = std::make_shared<CollectorSeat>(
      CollectorSeat{request_.id, request_.rank, request_.nranks, std::move(root), std::move(door), listen_for_others()});
  auto thread =
      start_thread({"fccl-bootstrap", "collects the ranks of a host"}, [seat] { Collector(std::move(*seat)).serve(); });
  if (!thread) return std::move(seat->root);
  thread->detach();
  FCCL_TRY_ASSIGN(auto channel, pass_door());
  if (!channel) return reach_by_tcp();
  return std::move(*channel);
}

Descriptor WayToRoot::listen_for_others() const {
  const auto way = local_address_towards(request_.id.root);
  if (!way || !request_.settings.socket_ports.empty()) return {};
  auto listener = listen_tcp(*way);
  return listener ? std::move(*listener) : Descriptor{};
}

std::string WayToRoot::root_left(const std::string& why) const {
  return fmt::format(
      "{} joined, but {} did not stay until all {} ranks had: {}. The process that called "
      "fcclGetUniqueId must live until then",
      name(), root(), request_.nranks, why);
}

Result<void> WayToRoot::check_root(const Channel& channel) const {
  if (channel.peer().rank != kRootRank)
    return fail(fcclInvalidUsage,
                fmt::format("{} cannot join: at {} listens a rank, not the root", name(), root_text(request_.id)));
  if (channel.peer().version != kOwnVersion) return fail(fcclInvalidUsage, version_difference({request_.rank}, channel.peer()));
  return {};
}

// The listener is older than the id, so a refused connection is final unless the request awaits the root. A connection that is
// closed within the handshake is not final: in a flood of strangers the root drops the oldest one.
Result<Channel> WayToRoot::reach_by_tcp() {
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

}  // namespace fccl::core
