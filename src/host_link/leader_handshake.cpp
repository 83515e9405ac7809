// Waits of a leader, and how a failure reaches all others.
#include "host_link/leader_handshake.h"

#include <fmt/format.h>

#include <cerrno>
#include <numeric>
#include <thread>

#include "os/error_text.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

// Returns all hosts but one.
std::vector<int> all_but(int host, int hosts) {
  std::vector<int> others(hosts);
  std::iota(others.begin(), others.end(), 0);
  others.erase(others.begin() + host);
  return others;
}

}  // namespace

LeaderHandshake::LeaderHandshake(const HostLinkRequest& request, std::list<LeaderConnection>& connections,
                                 const WaitLimit& limit)
    : request_(request),
      connections_(connections),
      limit_({limit.deadline.at + kReportStep}, limit.cancel_check),
      next_look_(Deadline::after(kLookInterval)),
      blobs_(request.leaders.size()) {}

Result<void> LeaderHandshake::let_in(const Descriptor& listener) {
  Acceptor acceptor(listener.get(), request_.id.key, {request_.rank});
  while (std::cmp_less(settled_.size(), request_.hosts() - 1)) FCCL_TRY(turn(&acceptor));
  return {};
}

// Other ranks of this communicator hold the key, too, but only leaders are admitted, each once.
void LeaderHandshake::admit(Channel channel) {
  const int rank = channel.peer().rank;
  if (rank < 0 || std::cmp_greater_equal(rank, request_.host_of.size())) return;
  const int host = request_.host_of[rank];
  if (host == request_.host() || request_.leaders[host].rank != rank || !settled_.insert(host).second) return;
  connections_.emplace_back(host, std::move(channel), request_.hosts());
}

Result<void> LeaderHandshake::reach_hub() {
  const std::string& text = request_.leaders[HostLinkRequest::kHub].address;
  const std::optional<Address> address = address_from(text);
  if (!address)
    return fail(fcclInternalError, fmt::format("{} is said to listen at \"{}\", which is not an address", hub(), text));
  ConnectPatience patience;
  while (connections_.empty()) {
    FCCL_TRY(try_to_reach(*address, patience.next()));
    if (!connections_.empty()) return {};
    std::this_thread::sleep_for(ConnectPatience::kPause);
    FCCL_TRY(look());
  }
  return {};
}

// An error that this returns is final. The hub has listened since before any rank learned its address, so a refused connection
// is final; a connection that is closed within the handshake is not: in a flood of strangers the hub drops the oldest one.
Result<void> LeaderHandshake::try_to_reach(const Address& address, std::chrono::milliseconds patience) {
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
                fmt::format("{} cannot reach {}: nobody listens at {} any more; it has ended, or given up", self(), hub(),
                            to_text(address)));
  if (is_short_of_descriptors(connection.error))
    return fail(system_error(connection.error),
                fmt::format("{} cannot make a socket to reach {}: {}", self(), hub(), error_text(connection.error)));
  observed_ = fmt::format("{} cannot be reached at {}: {}", hub(), to_text(address), error_text(connection.error));
  if (connection.error != 0) return {};

  Channel channel(std::move(connection.socket), Conversation(Role::connects, request_.id.key, {request_.rank}));
  observed_ = fmt::format("{} took the connection at {}, but does not answer", hub(), to_text(address));
  while (!channel.open()) {
    const Result<void> opened = channel.await_open(next_look());
    if (!opened && opened.error().code == fcclInvalidUsage)
      return fail(opened.error().code,
                  fmt::format("{} cannot reach {} at {}: {}", self(), hub(), to_text(address), opened.error().message));
    if (!opened && opened.error().code != fcclTimeout) {
      observed_ = fmt::format("{} took the connection at {}, then: {}", hub(), to_text(address), opened.error().message);
      return {};
    }
    FCCL_TRY(look());
  }
  if (channel.peer().rank != request_.leaders[HostLinkRequest::kHub].rank)
    return fail(fcclInvalidUsage,
                fmt::format("{} cannot reach {}: another rank listens at {}", self(), hub(), to_text(address)));
  connections_.emplace_back(HostLinkRequest::kHub, std::move(channel), request_.hosts());
  return {};
}

Result<std::vector<std::string>> LeaderHandshake::exchange(const std::string& mine) {
  if (mine.size() > kBlobLimit)
    return fail(fcclInternalError,
                fmt::format("{} has {} bytes for the other hosts, more than {}", self(), mine.size(), kBlobLimit));
  if (!request_.is_hub()) {
    FCCL_TRY(tell(Blob{mine}));
    FCCL_TRY(gather_blobs());
    return std::move(blobs_);
  }
  // The hub gathers everything before it tells anything, so that no leader hears of an exchange that it has not begun.
  blobs_[HostLinkRequest::kHub] = mine;
  FCCL_TRY(gather_blobs());
  const size_t bytes =
      std::accumulate(blobs_.begin(), blobs_.end(), size_t{0}, [](size_t sum, const auto& each) { return sum + each.size(); });
  if (bytes > kBlobsLimit)
    return pass_on(
        {fcclInternalError, fmt::format("{} has {} bytes for the other hosts, more than {}", self(), bytes, kBlobsLimit)},
        nullptr);
  Blobs all{std::move(blobs_)};
  FCCL_TRY(tell(all));
  return std::move(all.of_hosts);
}

Result<void> LeaderHandshake::gather_blobs() {
  settled_.clear();
  for (LeaderConnection& connection : connections_) FCCL_TRY(attend(connection));
  const auto all_here = [&] {
    for (const LeaderConnection& connection : connections_)
      if (connection.has_blobs()) settled_.insert(connection.host());
    return settled_.size() == connections_.size();
  };
  while (!all_here()) FCCL_TRY(turn(nullptr));
  for (LeaderConnection& connection : connections_) {
    std::vector<std::string> taken = connection.take_blobs();
    if (request_.is_hub())
      blobs_[connection.host()] = std::move(taken.front());
    else
      blobs_ = std::move(taken);
  }
  return {};
}

// All connections share the bytes.
Result<void> LeaderHandshake::tell(const LinkMessage& blobs) {
  const auto bytes = std::make_shared<const std::string>(encode_link(blobs));
  for (LeaderConnection& connection : connections_) FCCL_TRY(attend(connection));
  has_told_ = true;
  for (LeaderConnection& connection : connections_) {
    connection.tell(bytes);
    FCCL_TRY(attend(connection));
  }
  settled_.clear();
  while (true) {
    for (LeaderConnection& connection : connections_)
      if (connection.pending() == 0) settled_.insert(connection.host());
    if (settled_.size() == connections_.size()) return {};
    FCCL_TRY(turn(nullptr));
  }
}

// True if the connection has got everything, so that it may be left.
bool LeaderHandshake::is_served(const LeaderConnection& connection) const {
  return request_.is_hub() ? has_told_ : connection.has_blobs();
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
  const std::string leader = describe(request_.leaders[connection.host()]);
  if (connection.end() == LinkEnd::broken)
    return pass_on({MessageKind::died, fmt::format("{} ended before the communicator was ready: {}", leader, connection.why())},
                   &connection);
  if (connection.end() == LinkEnd::goodbye && !is_served(connection))
    return pass_on({MessageKind::left_in_init, fmt::format("{} left before the communicator was ready", leader)}, &connection);
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
  if (std::string whom = awaited(); request_.is_hub() && next_awaiting_.passed() && whom != told_awaited_) {
    told_awaited_ = std::move(whom);
    next_awaiting_ = Deadline::after(kReportStep);
    for (LeaderConnection& connection : connections_) connection.tell(encode_link(Awaiting{told_awaited_}));
  }
  return {};
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
                      self(), waited, request_.hosts(), awaited(), request_.leaders[HostLinkRequest::kHub].address)};
}

std::string LeaderHandshake::awaited() const {
  if (!request_.is_hub()) {
    if (connections_.empty()) return observed_;
    const std::string& whom = connections_.front().awaiting();
    return whom.empty() ? hub() + " has not said who is missing" : whom;
  }
  std::string text;
  int missing = 0;
  for (const int host : all_but(request_.host(), request_.hosts())) {
    if (settled_.contains(host) || missing++ > 0) continue;
    text = "missing: " + describe(request_.leaders[host]);
  }
  return missing > 1 ? fmt::format("{} and {} more", text, missing - 1) : text;
}

}  // namespace fccl::core
