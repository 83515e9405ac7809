// The link's thread, and how leaders exchange news through it.
#include "host_link/host_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "host_link/leader_connection.h"
#include "host_link/leader_handshake.h"
#include "os/error_text.h"
#include "os/process_watch.h"
#include "os/thread.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// How long the system may take to accept the last words.
constexpr auto kFarewellTime = 5ms;
constexpr Deadline kNever{Clock::time_point::max()};
// Indexes of the descriptors that are polled before the processes.
constexpr size_t kBell = 0;
constexpr size_t kWake = 1;
constexpr ThreadRole kRole{"fccl-host-link", "tells other hosts what became of the ranks of this one"};

void drain(int eventfd) {
  eventfd_t count = 0;
  (void)::eventfd_read(eventfd, &count);
}

}  // namespace

HostLink::HostLink(HostLinkRequest request, Descriptor bell)
    : request_(std::move(request)), bell_(std::move(bell)), is_cut_(request_.leaders.size()), told_(request_) {}

Result<std::unique_ptr<HostLink>> HostLink::meet(HostLinkRequest request, Descriptor listener, const WaitLimit& limit) {
  Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell)
    return fail(system_error(errno), fmt::format("cannot make an eventfd for the link between hosts: {}", error_text(errno)));
  std::unique_ptr<HostLink> link(new HostLink(std::move(request), std::move(bell)));
  LeaderHandshake handshake(link->request_, link->connections_, limit);
  Result<void> met = link->request_.is_top() ? Result<void>() : handshake.reach_parent();
  if (met) met = handshake.let_children_in(listener);
  // A copy in a forked child is shut, too, so that late connections are refused.
  if (listener) shut(listener.get());
  if (!met) return fail(met.error());
  return link;
}

Result<std::vector<std::string>> HostLink::exchange(const std::string& mine, const WaitLimit& limit) {
  return LeaderHandshake(request_, connections_, limit).exchange(mine);
}

Result<void> HostLink::start(Descriptor wake, std::vector<std::shared_ptr<ProcessWatch>> processes, LinkEvents events) {
  wake_ = std::move(wake);
  processes_ = std::move(processes);
  events_ = std::move(events);
  FCCL_TRY_ASSIGN(auto thread, start_thread(kRole, [this] { serve(); }));
  thread_ = std::move(thread);
  return {};
}

void HostLink::tell(const LinkNews& news) {
  told_.keep(news);
  ::eventfd_write(bell_.get(), 1);
}

void HostLink::stop() {
  if (!thread_.joinable()) return;
  leaving_ = true;
  ::eventfd_write(bell_.get(), 1);
  thread_.join();
  leaving_ = false;
}

void HostLink::retire(std::unique_ptr<HostLink> link, std::chrono::milliseconds most) {
  if (!link->thread_.joinable()) return;
  link->stop();
  link->until_ = Deadline::after(most);
  link->told_.keep(link->events_.look());
  (void)link->relay_queued();
  if (!link->is_needed()) return;
  link->hand_over();
  // If the thread cannot start, the link ends here.
  const std::shared_ptr<HostLink> shared = std::move(link);
  if (auto thread = start_thread(kRole, [shared] { shared->serve(); })) thread->detach();
}

HostLink::~HostLink() {
  stop();
  (void)relay_queued();
  relay(encode_link(Goodbye{}), nullptr);
  hand_over();
}

void HostLink::serve() {
  polled_ = {{bell_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  for (const auto& process : processes_) polled_.push_back({process->descriptor(), POLLIN, 0});
  const size_t own = polled_.size();
  for (LeaderConnection& connection : connections_) attend(connection);
  while (relay_queued() && is_needed()) {
    polled_.resize(own);
    for (const LeaderConnection& connection : connections_) polled_.push_back(connection.watch());
    poll_until(polled_, until_.value_or(kNever));
    if (polled_[kBell].revents != 0) drain(bell_.get());
    look(std::span(polled_).first(own).subspan(kWake));
    auto next = connections_.begin();
    for (const pollfd& entry : std::span(polled_).subspan(own)) {
      LeaderConnection& connection = *next++;
      if (entry.revents != 0) attend(connection);
    }
  }
}

// A retired link is needed while it connects two parties: this host while a rank of it is there, and each host that still
// listens.
bool HostLink::is_needed() {
  if (!until_) return true;
  auto parties = std::ranges::count_if(connections_, [](const LeaderConnection& connection) { return !connection.end(); });
  if (told_.has_ranks_here()) ++parties;
  return parties >= 2 && !told_.knows_a_failure() && !until_->passed();
}

// Only `wake` can be written to again; a process that has ended stays ready. The thread tells the news before it sleeps again.
void HostLink::look(std::span<pollfd> watched) {
  bool ready = false;
  for (pollfd& entry : watched) {
    if (entry.revents == 0) continue;
    ready = true;
    if (entry.fd == wake_.get() && (entry.revents & POLLIN) != 0)
      drain(wake_.get());
    else
      entry.fd = -1;
  }
  if (ready) told_.keep(events_.look());
}

// Returns true if the link continues. News that came before the link was to end is told.
bool HostLink::relay_queued() {
  const bool leaving = leaving_;
  for (const std::string& message : told_.take()) relay(message, nullptr);
  return !leaving;
}

void HostLink::attend(LeaderConnection& connection) {
  connection.pump();
  while (const std::optional<LinkMessage> message = connection.hear())
    if (!take(connection, *message)) return lose(connection);
  if (connection.end()) lose(connection);
}

// Returns false if that connection may not say this.
bool HostLink::take(const LeaderConnection& from, const LinkMessage& message) {
  const auto ranks = static_cast<int>(request_.host_of.size());
  if (const auto* failure = std::get_if<Failure>(&message)) {
    if (!told_.hear_failure()) return true;
    relay(encode_link(message), &from);
    events_.failed(failure->error);
  } else if (const auto* departure = std::get_if<Departure>(&message)) {
    if (departure->rank >= ranks || !speaks_of(from, request_.host_of[departure->rank])) return false;
    if (!told_.hear(*departure)) return true;
    relay(encode_link(message), &from);
    events_.gone(*departure);
  } else if (const auto* wait = std::get_if<LongWait>(&message)) {
    if (wait->rank >= ranks || wait->awaited >= ranks || !speaks_of(from, request_.host_of[wait->rank])) return false;
    relay(encode_link(message), &from);
    events_.waits(*wait);
  } else if (const auto* told = std::get_if<Cut>(&message)) {
    if (told->host >= request_.hosts() || told->host == from.host() || !speaks_of(from, told->host)) return false;
    cut(*told, &from);
  }
  return true;
}

// A child may speak of the hosts of its subtree, the parent of all others but this one and those below it.
bool HostLink::speaks_of(const LeaderConnection& connection, int host) const {
  return request_.tree.leads_through(connection.host(), request_.host(), host);
}

void HostLink::lose(LeaderConnection& connection) {
  connection.break_off("it sent a message that makes no sense");
  cut({connection.host(), *connection.end()}, &connection);
}

// Every leader knows the tree, so those that are unheard because of an end need not be told one by one.
void HostLink::cut(const Cut& ended, const LeaderConnection* from) {
  if (is_cut_[ended.host]) return;
  is_cut_[ended.host] = true;
  relay(encode_link(ended), from);
  events_.cut(request_.leaders[ended.host].rank, ended.how);
  for (int host = 0; host < request_.hosts(); ++host)
    if (!is_cut_[host] && request_.tree.leads_through(ended.host, request_.host(), host)) {
      is_cut_[host] = true;
      events_.unheard(request_.leaders[host].rank, request_.leaders[ended.host].rank);
    }
}

void HostLink::relay(std::string_view message, const LeaderConnection* from) {
  for (LeaderConnection& connection : connections_)
    if (&connection != from) connection.tell(message);
}

// Gives the system the pending bytes.
void HostLink::hand_over() {
  const Deadline deadline = Deadline::after(kFarewellTime);
  while (true) {
    std::vector<pollfd> pending;
    for (LeaderConnection& connection : connections_) {
      connection.pump();
      if (connection.pending() > 0) pending.push_back({connection.watch().fd, POLLOUT, 0});
    }
    if (pending.empty() || poll_until(pending, deadline) == 0) return;
  }
}

}  // namespace fccl::core
