// Hands descriptors from the leader of a host to its other ranks.
#include "passing/descriptor_passing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "bootstrap/messages.h"
#include "channels/acceptor.h"
#include "os/error_text.h"
#include "os/process_watch.h"
#include "sockets/socket.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

constexpr auto kRetryPause = 1ms;

// A member of this host that is waited for, and the watch that tells if it dies.
struct Awaited {
  Member member;
  std::shared_ptr<ProcessWatch> watch;

  Result<void> still_alive() const {
    if (watch->alive()) return {};
    return fail(MessageKind::died, fmt::format("{} died before the communicator was ready", describe(member)));
  }
};

Result<Awaited> await_member(const Member& member) {
  Result<std::shared_ptr<ProcessWatch>> watch = ProcessWatch::of(member.pid);
  if (watch) return Awaited{member, std::move(*watch)};
  return fail(watch.error().code, fmt::format("{} cannot be waited for: {}", describe(member), watch.error().message));
}

// The leader's side: the ranks that still have to come, and the channels that are being served.
class HandOut {
 public:
  HandOut(const Joined& joined, std::span<const int> fds)
      : fds_(fds), acceptor_(joined.listener.get(), joined.id.key, {joined.rank}) {}

  Result<void> expect(const Member& member) {
    FCCL_TRY_ASSIGN(Awaited awaited, await_member(member));
    waiting_.emplace(member.rank, std::move(awaited));
    return {};
  }

  Result<void> serve(const WaitLimit& limit) {
    for (Deadline look{}; !waiting_.empty(); turn(look)) {
      if (limit.deadline.passed()) return fail(MessageKind::late_for_init, missing());
      if (!look.passed()) continue;
      look = limit.next_look();
      FCCL_TRY(limit.check_cancelled());
      if (const int error = acceptor_.shortage(); error != 0)
        return fail(system_error(error), fmt::format("the leader of this host cannot take a connection of {}: {}",
                                                     list_ranks(awaited()), error_text(error)));
      for (const auto& [rank, awaited] : waiting_) FCCL_TRY(awaited.still_alive());
    }
    return {};
  }

 private:
  void turn(Deadline until) {
    polled_.clear();
    acceptor_.watch(polled_);
    const size_t of_acceptor = polled_.size();
    for (const Channel& channel : served_) polled_.push_back({channel.socket(), channel.events(), 0});
    poll_until(polled_, {std::min(until.at, acceptor_.patience().at)});
    auto next = served_.begin();
    for (const pollfd& entry : std::span(polled_).subspan(of_acceptor)) {
      const auto channel = next++;
      if (entry.revents != 0) finish(channel);
    }
    for (Channel& channel : acceptor_.admit(std::span(polled_).first(of_acceptor))) {
      if (!waiting_.contains(channel.peer().rank)) continue;
      channel.say({}, fds_);
      served_.push_back(std::move(channel));
      finish(std::prev(served_.end()));
    }
  }

  // A rank whose connection breaks is still awaited: it connects again, or its watch finds it dead.
  void finish(std::list<Channel>::iterator channel) {
    const Result<void> pumped = channel->pump();
    if (pumped && channel->pending() > 0) return;
    if (pumped) waiting_.erase(channel->peer().rank);
    served_.erase(channel);
  }

  std::vector<int> awaited() const {
    std::vector<int> ranks;
    ranks.reserve(waiting_.size());
    for (const auto& [rank, awaited] : waiting_) ranks.push_back(rank);
    return ranks;
  }

  std::string missing() const {
    return fmt::format("{} of this host did not come for the shared segment before the deadline (FCCL_INIT_TIMEOUT)",
                       list_ranks(awaited()));
  }

  std::span<const int> fds_;
  Acceptor acceptor_;
  std::map<int, Awaited> waiting_;
  std::list<Channel> served_;
  std::vector<pollfd> polled_;
};

// A non-leader's side: connects to the leader until it has the descriptors.
class Receiver {
 public:
  Receiver(const Joined& joined, Awaited leader, size_t count, const WaitLimit& limit)
      : joined_(joined), leader_(std::move(leader)), count_(count), limit_(limit) {}

  Result<std::vector<Descriptor>> receive() const {
    while (true) {
      Connection connection = connect_local(leader_.member.listener, kLookInterval);
      if (is_short_of_descriptors(connection.error))
        return fail(system_error(connection.error),
                    fmt::format("rank {} cannot make a socket to reach {}, which leads this host: {}", joined_.rank,
                                describe(leader_.member), error_text(connection.error)));
      if (connection.error == ECONNREFUSED)
        return fail(fcclRemoteError, fmt::format("{}, which leads this host, left before it handed out the shared segment",
                                                 describe(leader_.member)));
      if (connection.socket) {
        auto received = receive_by(std::move(connection.socket));
        if (!received || !received->empty()) return received;
      }
      FCCL_TRY(still_waiting());
      // For EAGAIN, a full queue at the listener, connect_local has waited already.
      if (connection.error != EAGAIN) std::this_thread::sleep_for(kRetryPause);
    }
  }

 private:
  // Receives over one connection; returns nothing if it broke.
  Result<std::vector<Descriptor>> receive_by(Descriptor socket) const {
    Channel channel(std::move(socket), Conversation(Role::connects, joined_.id.key, {joined_.rank}));
    channel.expect_descriptors(count_);
    while (true) {
      Result<std::string> message = channel.await_message(limit_.next_look());
      if (message && channel.peer().rank == leader_.member.rank) {
        if (auto descriptors = channel.take_descriptors(); !descriptors.empty()) return descriptors;
        if (channel.has_lost_descriptors())
          return fail(MessageKind::too_many_files, fmt::format("rank {} cannot take the descriptor that {} hands out: {}",
                                                               joined_.rank, describe(leader_.member), error_text(EMFILE)));
      }
      if (message || message.error().code == fcclInvalidUsage)
        return fail(fcclInternalError,
                    fmt::format("rank {} got no descriptor from {}: {}", joined_.rank, describe(leader_.member),
                                message ? "its message had none" : message.error().message));
      FCCL_TRY(still_waiting());
      if (message.error().code != fcclTimeout) return std::vector<Descriptor>{};
    }
  }

  Result<void> still_waiting() const {
    FCCL_TRY(limit_.check_cancelled());
    FCCL_TRY(leader_.still_alive());
    if (!limit_.deadline.passed()) return {};
    return fail(MessageKind::late_for_init,
                fmt::format("{}, which leads this host, did not hand out the shared segment before the deadline "
                            "(FCCL_INIT_TIMEOUT)",
                            describe(leader_.member)));
  }

  const Joined& joined_;
  Awaited leader_;
  size_t count_;
  const WaitLimit& limit_;
};

}  // namespace

Result<void> send_descriptors(const Joined& joined, std::span<const int> fds, const std::vector<int>& ranks,
                              const WaitLimit& limit) {
  HandOut handing(joined, fds);
  for (const int rank : ranks) FCCL_TRY(handing.expect(joined.members[rank]));
  return handing.serve(limit);
}

Result<std::vector<Descriptor>> receive_descriptors(const Joined& joined, int leader_rank, size_t count,
                                                    const WaitLimit& limit) {
  FCCL_TRY_ASSIGN(Awaited leader, await_member(joined.members[leader_rank]));
  return Receiver(joined, std::move(leader), count, limit).receive();
}

// The ranks hand out in their order, so that of all that wait for each other the first one is served.
Result<std::vector<Descriptor>> swap_descriptors(const Joined& joined, int fd, const WaitLimit& limit) {
  std::vector<Descriptor> theirs(joined.members.size());
  std::vector<int> elsewhere;
  for (const Member& member : joined.members)
    if (member.pid != joined.members[joined.rank].pid) elsewhere.push_back(member.rank);
  for (const Member& member : joined.members) {
    if (member.rank == joined.rank) {
      FCCL_TRY(send_descriptors(joined, std::array{fd}, elsewhere, limit));
    } else if (std::ranges::find(elsewhere, member.rank) != elsewhere.end()) {
      FCCL_TRY_ASSIGN(auto received, receive_descriptors(joined, member.rank, 1, limit));
      theirs[member.rank] = std::move(received.front());
    }
  }
  return theirs;
}

}  // namespace fccl::core
