// Waits of a leader, and how a failure reaches all others.
#include "host_link/leader_handshake.h"

#include <fmt/format.h>

#include <cerrno>
#include <numeric>
#include <thread>

#include "os/error_text.h"
#include "waiting/failure_timing.h"

namespace fccl::core {

LeaderHandshake::LeaderHandshake(const HostLinkRequest& request, std::list<LeaderConnection>& connections,
                                 const WaitLimit& limit)
    : request_(request),
      connections_(connections),
      limit_({limit.deadline.at + kReportStep}, limit.cancel_check),
      next_look_(Deadline::after(kLookInterval)),
      blobs_(request.leaders.size()) {}

bool LeaderHandshake::is_parent(const LeaderConnection& connection) const {
  return !request_.is_top() && connection.host() == request_.parent();
}

LeaderHandshake::Connections LeaderHandshake::children() {
  Connections children;
  for (LeaderConnection& connection : connections_)
    if (!is_parent(connection)) children.push_back(&connection);
  return children;
}

Result<void> LeaderHandshake::let_children_in(const Descriptor& listener) {
  const std::vector<int> children = request_.tree.children_of(request_.host());
  if (children.empty()) return {};
  missing_ = {children.begin(), children.end()};
  Acceptor acceptor(listener.get(), request_.id.key, {request_.rank});
  while (!missing_.empty()) FCCL_TRY(turn(&acceptor));
  tell_awaited();
  return {};
}

// Other ranks of this communicator hold the key, too, but only leaders are admitted, each once.
void LeaderHandshake::admit(Channel channel) {
  const int rank = channel.peer().rank;
  if (rank < 0 || std::cmp_greater_equal(rank, request_.host_of.size())) return;
  const int host = request_.host_of[static_cast<size_t>(rank)];
  if (leader(host).rank != rank || missing_.erase(host) == 0) return;
  connections_.emplace_back(host, std::move(channel), static_cast<int>(request_.tree.subtree_of(host).size()));
}

Result<void> LeaderHandshake::reach_parent() {
  missing_ = {request_.parent()};
  const std::string& text = leader(request_.parent()).address;
  const std::optional<Address> address = address_from(text);
  if (!address)
    return fail(fcclInternalError,
                fmt::format("{} is said to listen at \"{}\", which is not an address", name_of_parent(), text));
  ConnectPatience patience;
  while (connections_.empty()) {
    FCCL_TRY(try_to_reach(*address, patience.next()));
    if (!connections_.empty()) return {};
    std::this_thread::sleep_for(ConnectPatience::kPause);
    FCCL_TRY(look());
  }
  return {};
}

// An error that this returns is final. The parent has listened since before any rank learned its address, so a refused
// connection is final; a connection that is closed within the handshake is not: in a flood of strangers the parent drops the
// oldest one.
Result<void> LeaderHandshake::try_to_reach(const Address& address, std::chrono::milliseconds patience) {
  const std::string parent = name_of_parent();
  Connection connection = begin_to_connect(address);
  const Deadline until = Deadline::after(patience);
  if (connection.socket) {
    do {
      connection.error = await_connected(connection.socket.get(), next_look());
      FCCL_TRY(look());
    } while (connection.error == ETIMEDOUT && !until.passed());
  }
  if (connection.error == ECONNREFUSED)
    return fail(MessageKind::nobody_listens,
                fmt::format("{} cannot reach {}: nobody listens at {} any more; it has ended, or given up", self(), parent,
                            to_text(address)));
  if (is_short_of_descriptors(connection.error))
    return fail(system_error(connection.error),
                fmt::format("{} cannot make a socket to reach {}: {}", self(), parent, error_text(connection.error)));
  observed_ = fmt::format("{} cannot be reached at {}: {}", parent, to_text(address), error_text(connection.error));
  if (connection.error != 0) return {};

  Channel channel(std::move(connection.socket), Conversation(Role::connects, request_.id.key, {request_.rank}));
  observed_ = fmt::format("{} took the connection at {}, but does not answer", parent, to_text(address));
  while (!channel.open()) {
    const Result<void> opened = channel.await_open(next_look());
    if (!opened && opened.error().code == fcclInvalidUsage)
      return fail(opened.error().code,
                  fmt::format("{} cannot reach {} at {}: {}", self(), parent, to_text(address), opened.error().message));
    if (!opened && opened.error().code != fcclTimeout) {
      observed_ = fmt::format("{} took the connection at {}, then: {}", parent, to_text(address), opened.error().message);
      return {};
    }
    FCCL_TRY(look());
  }
  if (channel.peer().rank != leader(request_.parent()).rank)
    return fail(fcclInvalidUsage,
                fmt::format("{} cannot reach {}: another rank listens at {}", self(), parent, to_text(address)));
  connections_.emplace_back(request_.parent(), std::move(channel), request_.hosts());
  return {};
}

Result<std::vector<std::string>> LeaderHandshake::exchange(const std::string& mine) {
  if (mine.size() > kBlobLimit)
    return fail(fcclInternalError,
                fmt::format("{} has {} bytes for the other hosts, more than {}", self(), mine.size(), kBlobLimit));
  // All blobs are at the top before it tells any, so no leader hears of an exchange that another one has not begun.
  blobs_[static_cast<size_t>(request_.host())] = mine;
  FCCL_TRY(gather_blobs(children()));
  const size_t bytes =
      std::accumulate(blobs_.begin(), blobs_.end(), size_t{0}, [](size_t sum, const auto& each) { return sum + each.size(); });
  if (bytes > kBlobsLimit)
    return pass_on(
        {fcclInternalError, fmt::format("{} has {} bytes for the other hosts, more than {}", self(), bytes, kBlobsLimit)},
        nullptr);
  if (!request_.is_top()) {
    FCCL_TRY(tell(blobs_of_subtree(), {&parent()}));
    FCCL_TRY(gather_blobs({&parent()}));
  }
  Blobs all{std::move(blobs_)};
  FCCL_TRY(tell(all, children()));
  return std::move(all.of_hosts);
}

Blobs LeaderHandshake::blobs_of_subtree() {
  Blobs blobs;
  for (const int host : request_.tree.subtree_of(request_.host()))
    blobs.of_hosts.push_back(std::move(blobs_[static_cast<size_t>(host)]));
  return blobs;
}

Result<void> LeaderHandshake::gather_blobs(const Connections& from) {
  missing_.clear();
  for (LeaderConnection* connection : from) {
    missing_.insert(connection->host());
    FCCL_TRY(attend(*connection));
  }
  while (true) {
    for (LeaderConnection* connection : from)
      if (connection->has_blobs()) missing_.erase(connection->host());
    if (missing_.empty()) break;
    FCCL_TRY(turn(nullptr));
  }
  for (LeaderConnection* connection : from) {
    std::vector<std::string> taken = connection->take_blobs();
    if (is_parent(*connection)) {
      blobs_ = std::move(taken);
    } else {
      const std::vector<int> hosts = request_.tree.subtree_of(connection->host());
      for (size_t i = 0; i < hosts.size(); ++i) blobs_[static_cast<size_t>(hosts[i])] = std::move(taken[i]);
    }
  }
  return {};
}

// All connections share the bytes.
Result<void> LeaderHandshake::tell(const LinkMessage& blobs, const Connections& to) {
  if (to.empty()) return {};
  const auto bytes = std::make_shared<const std::string>(encode_link(blobs));
  for (LeaderConnection* connection : to) FCCL_TRY(attend(*connection));
  has_told_ = !is_parent(*to.front());
  missing_.clear();
  for (LeaderConnection* connection : to) {
    connection->tell(bytes);
    missing_.insert(connection->host());
    FCCL_TRY(attend(*connection));
  }
  while (true) {
    for (LeaderConnection* connection : to)
      if (connection->pending() == 0) missing_.erase(connection->host());
    if (missing_.empty()) return {};
    FCCL_TRY(turn(nullptr));
  }
}

// True if the connection has got everything, so that it may be left.
bool LeaderHandshake::is_served(const LeaderConnection& connection) const {
  return has_told_ || (is_parent(connection) && connection.has_blobs());
}

Result<void> LeaderHandshake::turn(Acceptor* acceptor) {
  std::vector<pollfd> polled;
  Deadline until = next_look();
  if (acceptor != nullptr) {
    acceptor->watch(polled);
    until.at = std::min(until.at, acceptor->patience().at);
  }
  const size_t of_acceptor = polled.size();
  for (const LeaderConnection& connection : connections_) polled.push_back(connection.watch());
  poll_until(polled, until);
  auto next = connections_.begin();
  for (const pollfd& entry : std::span(polled).subspan(of_acceptor)) {
    LeaderConnection& connection = *next++;
    if (entry.revents != 0) FCCL_TRY(attend(connection));
  }
  if (acceptor != nullptr)
    for (Channel& channel : acceptor->admit(std::span(polled).first(of_acceptor))) admit(std::move(channel));
  if (const int error = acceptor != nullptr ? acceptor->shortage() : 0; error != 0)
    return pass_on({system_error(error),
                    fmt::format("{} cannot take the connection of another host's leader: {}", self(), error_text(error))},
                   nullptr);
  return look();
}

Result<void> LeaderHandshake::attend(LeaderConnection& connection) {
  connection.pump();
  if (const Error* failure = connection.failure()) return pass_on(*failure, &connection);
  const std::string name = describe(leader(connection.host()));
  if (connection.end() == LinkEnd::broken)
    return pass_on({MessageKind::died, fmt::format("{} ended before the communicator was ready: {}", name, connection.why())},
                   &connection);
  if (connection.end() == LinkEnd::goodbye && !is_served(connection))
    return pass_on({MessageKind::left_in_init, fmt::format("{} left before the communicator was ready", name)}, &connection);
  return {};
}

Result<void> LeaderHandshake::look() {
  if (!next_look().passed()) return {};
  if (limit_.deadline.passed()) return pass_on(timed_out(), nullptr);
  next_look_ = Deadline::after(kLookInterval);
  if (const Result<void> wanted = limit_.check_cancelled(); !wanted) {
    (void)pass_on({fcclRemoteError, fmt::format("{} gave up waiting for other hosts: {}", self(), wanted.error().message)},
                  nullptr);
    return fail(wanted.error());
  }
  if (next_awaiting_.passed()) tell_awaited();
  return {};
}

// Tells those who wait for this leader whom it waits for, if that has changed.
void LeaderHandshake::tell_awaited() {
  next_awaiting_ = Deadline::after(kReportStep);
  const std::string up = awaited_below(), down = missing_.empty() ? std::string() : awaited();
  for (LeaderConnection& connection : connections_) {
    const bool is_up = is_parent(connection);
    if ((is_up ? up : down) != (is_up ? told_up_ : told_down_)) connection.tell(encode_link(Awaiting{is_up ? up : down}));
  }
  told_up_ = up;
  told_down_ = down;
}

// If the failure cannot be sent, nothing changes here.
tl::unexpected<Error> LeaderHandshake::pass_on(const Error& error, const LeaderConnection* from) {
  for (LeaderConnection& connection : connections_) {
    if (&connection == from) continue;
    connection.tell(encode_link(Failure{error}));
    connection.pump();
  }
  return fail(error);
}

Error LeaderHandshake::timed_out() const {
  const auto waited = std::chrono::duration<double>(Clock::now() - begin_).count();
  return {MessageKind::late_for_init,
          fmt::format("{} waited {:.1f} s for the leaders of all {} hosts of its communicator: {}. Can every host reach {}? "
                      "FCCL_INIT_TIMEOUT decides how long to wait",
                      self(), waited, request_.hosts(), awaited(),
                      leader(awaits_parent() ? request_.parent() : request_.host()).address)};
}

std::string LeaderHandshake::awaited() const {
  if (!awaits_parent()) return awaited_below();
  if (connections_.empty()) return observed_;
  const std::string& whom = parent().awaiting();
  return whom.empty() ? name_of_parent() + " has not said who is missing" : whom;
}

// A child that waits knows better. Returns "" if this leader waits for no child.
std::string LeaderHandshake::awaited_below() const {
  if (missing_.empty() || awaits_parent()) return {};
  for (const LeaderConnection& connection : connections_)
    if (missing_.contains(connection.host()) && !connection.awaiting().empty()) return connection.awaiting();
  const std::string text = "missing: " + describe(leader(*missing_.begin()));
  return missing_.size() > 1 ? fmt::format("{} and {} more", text, missing_.size() - 1) : text;
}

}  // namespace fccl::core
