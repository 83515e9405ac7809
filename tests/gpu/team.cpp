// Starts the ranks of a case, passes on what they report, and sees to it that none outlives its limit.
#include "team.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

namespace fccl::gpu {

namespace {

constexpr size_t kMostBytes = 8 << 10;  // limit of one packet
constexpr double kBurialSeconds = 5;    // within which a killed process ends, its driver's cleaning up included
constexpr double kGraceSeconds = 0.5;   // for a rank to say itself that its time is over
// The first byte of a rank's report.
constexpr char kRow = 'R', kFailure = 'F', kUnsupported = 'U';

std::system_error last_error(const std::string& attempted) { return {errno, std::generic_category(), attempted}; }

std::pair<int, int> connect_two() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) throw last_error("socketpair");
  return {ends[0], ends[1]};
}

bool wait_readable(int descriptor, const Deadline& deadline) {
  pollfd polled{descriptor, POLLIN, 0};
  int ready = 0;
  do ready = poll(&polled, 1, deadline.milliseconds_left());
  while (ready == 0 ? !deadline.has_passed() : ready < 0 && errno == EINTR);
  if (ready < 0) throw last_error("poll");
  return ready > 0;
}

// The page that all ranks share: the meeting in front, then what the case uses.
struct Meeting {
  std::atomic<uint32_t> arrivals;
};
constexpr size_t kMeetingBytes = 4096;

class SharedPages {
 public:
  SharedPages() : at_(mmap(nullptr, kMeetingBytes + kSharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) throw last_error("mmap of the memory that ranks share");
    new (at_) Meeting{};
  }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages() { munmap(at_, kMeetingBytes + kSharedBytes); }

  std::span<std::byte> for_cases() const { return {static_cast<std::byte*>(at_) + kMeetingBytes, kSharedBytes}; }

 private:
  void* at_;
};

Meeting& meeting_of(std::span<std::byte> shared) {
  return *std::launder(reinterpret_cast<Meeting*>(shared.data() - kMeetingBytes));
}

// Writes what a rank has to say on its way out; nobody is left to hear of a failure to do so.
void say(int report, char kind, const std::string& text) {
  const std::string packet = kind + text.substr(0, kMostBytes - 1);
  [[maybe_unused]] const ssize_t sent = ::send(report, packet.data(), packet.size(), MSG_NOSIGNAL);
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return std::string("was ended by signal ") + strsignal(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void Rank::report(const Row& row) {
  const std::string packet = kRow + to_packet(row).substr(0, kMostBytes - 1);
  if (::send(connections_.report, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) throw last_error("reporting a row");
}

void Rank::send(int to, std::string_view bytes, int descriptor) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  // Packets are few and small: a peer's queue that is full has not been read for a whole case.
  if (sendmsg(connections_.peers.at(to), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    throw last_error("rank " + std::to_string(index_) + " sending to rank " + std::to_string(to));
  }
}

Packet Rank::receive(int from) {
  const std::string whom = "rank " + std::to_string(index_) + " waited for a message of rank " + std::to_string(from);
  if (!wait_readable(connections_.peers.at(from), deadline_)) {
    throw std::runtime_error(whom + " until the limit of the case had passed");
  }
  Packet packet;
  packet.bytes.resize(kMostBytes);
  iovec part{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(connections_.peers.at(from), &message, MSG_CMSG_CLOEXEC);
  if (got < 0) throw last_error(whom);
  if (got == 0) throw std::runtime_error(whom + ", which has ended");
  packet.bytes.resize(static_cast<size_t>(got));
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&packet.descriptor, CMSG_DATA(header), sizeof(int));
  }
  return packet;
}

void Rank::wait_for_end_of(int peer) {
  const std::string whom = "rank " + std::to_string(index_) + " waited for the end of rank " + std::to_string(peer);
  if (!wait_readable(connections_.peers.at(peer), deadline_)) {
    throw std::runtime_error(whom + " until the limit of the case had passed");
  }
  char message = 0;
  if (recv(connections_.peers.at(peer), &message, sizeof(message), MSG_PEEK) > 0)
    throw std::runtime_error(whom + ", which sent a message");
}

void Rank::meet(const char* what) {
  // Arrivals only grow, so the ranks of one meeting wait for the same multiple of their number.
  auto& arrivals = meeting_of(connections_.shared).arrivals;
  const uint32_t before = arrivals.fetch_add(1, std::memory_order_acq_rel);
  const uint32_t all = before - before % static_cast<uint32_t>(count_) + static_cast<uint32_t>(count_);
  while (arrivals.load(std::memory_order_acquire) < all) {
    if (deadline_.has_passed()) {
      const uint32_t missing = all - arrivals.load(std::memory_order_acquire);
      throw std::runtime_error("rank " + std::to_string(index_) + " waited for " + std::to_string(missing) +
                               " others until the limit of the case had passed: " + what);
    }
    sched_yield();
  }
}

namespace {

// The process that starts the ranks of one case. Owns their processes and its ends of their reports.
class Supervisor {
 public:
  Supervisor(int ranks, double seconds, const std::function<void(const Row&)>& hear)
      : deadline_(Deadline::in(seconds)), seconds_(seconds), hear_(hear), members_(ranks) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor() { end_all(); }

  void start(const std::function<void(Rank&)>& part);
  TeamEnd attend();

 private:
  struct Member {
    pid_t pid = -1;
    int report = -1;
  };

  [[noreturn]] void be_rank(int index, int report, pid_t parent, const std::function<void(Rank&)>& part);
  // Nothing if no packet has come yet; an empty one at the end of the stream.
  std::optional<std::string> next_packet(int index);
  void take(int index, const std::string& packet);
  // Takes one packet; at the end of the stream, the status of the process. True if that was the last of this rank.
  bool hear_from(int index);
  void hear_last_words();
  void bury(int index, const Deadline& patience);
  void blame_dead_members();
  // All that is heard is told: who waited may be heard before the one who was to blame.
  void fail(const std::string& why) {
    if (end_.outcome == Outcome::failed) end_.why += "; " + why;
    if (end_.outcome == Outcome::well) end_ = {Outcome::failed, why};
  }
  void end_all();

  Deadline deadline_;
  double seconds_;
  const std::function<void(const Row&)>& hear_;
  SharedPages pages_;
  std::vector<Member> members_;
  std::vector<std::vector<int>> links_;  // [from][to], while ranks are being started
  TeamEnd end_;
};

void Supervisor::start(const std::function<void(Rank&)>& part) {
  const int count = static_cast<int>(members_.size());
  links_.assign(count, std::vector<int>(count, -1));
  for (int low = 0; low < count; ++low) {
    for (int high = low + 1; high < count; ++high) std::tie(links_[low][high], links_[high][low]) = connect_two();
  }
  // Otherwise every child would write what is in the buffers once more.
  std::fflush(nullptr);
  const pid_t parent = getpid();
  for (int index = 0; index < count; ++index) {
    const auto [ours, theirs] = connect_two();
    const pid_t pid = fork();
    if (pid < 0) throw last_error("fork");
    if (pid == 0) {
      close(ours);
      be_rank(index, theirs, parent, part);
    }
    close(theirs);
    members_[index] = {pid, ours};
  }
  for (const auto& row : links_) {
    for (const int link : row) {
      if (link >= 0) close(link);
    }
  }
}

void Supervisor::be_rank(int index, int report, pid_t parent, const std::function<void(Rank&)>& part) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // Rows go by the report: what a library prints must not stand among them.
  dup2(STDERR_FILENO, STDOUT_FILENO);
  // A link whose other end only its own rank has tells of that rank's death.
  for (int from = 0; from < static_cast<int>(links_.size()); ++from) {
    for (const int link : links_[from]) {
      if (from != index && link >= 0) close(link);
    }
  }
  for (const Member& other : members_) {
    if (other.report >= 0) close(other.report);
  }
  int status = 1;
  try {
    Rank rank(index, static_cast<int>(members_.size()), deadline_, {links_[index], report, pages_.for_cases()});
    part(rank);
    status = 0;
  } catch (const Unsupported& missing) {
    say(report, kUnsupported, missing.what());
  } catch (const std::exception& error) {
    say(report, kFailure, error.what());
  }
  std::fflush(nullptr);
  _exit(status);
}

TeamEnd Supervisor::attend() {
  std::vector<int> running;
  for (size_t index = 0; index < members_.size(); ++index) running.push_back(static_cast<int>(index));
  const Deadline limit = Deadline::in(deadline_.seconds_left() + kGraceSeconds);
  while (!running.empty() && end_.outcome == Outcome::well) {
    std::vector<pollfd> polled;
    for (const int index : running) polled.push_back({members_[index].report, POLLIN, 0});
    const int ready = poll(polled.data(), polled.size(), limit.milliseconds_left());
    if (ready < 0 && errno != EINTR) throw last_error("poll");
    std::vector<int> left;
    for (size_t at = 0; at < polled.size(); ++at) {
      if (ready <= 0 || polled[at].revents == 0 || !hear_from(running[at])) left.push_back(running[at]);
    }
    running = std::move(left);
    if (!running.empty() && limit.has_passed()) {
      std::string whom;
      for (const int index : running) whom += (whom.empty() ? "" : ", ") + std::to_string(index);
      fail("passed its limit of " + std::to_string(seconds_) + " s; still running then: rank " + whom);
    }
  }
  if (end_.outcome == Outcome::failed) hear_last_words();
  end_all();
  return end_;
}

std::optional<std::string> Supervisor::next_packet(int index) {
  std::string packet(kMostBytes, '\0');
  const ssize_t got = recv(members_[index].report, packet.data(), packet.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  packet.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return packet;
}

void Supervisor::take(int index, const std::string& packet) {
  const std::string said = packet.substr(1);
  if (packet[0] == kRow) {
    if (const auto row = from_packet(said)) hear_(*row);
  } else if (packet[0] == kUnsupported) {
    // It explains the failures of those who waited for this rank.
    end_ = {Outcome::unsupported, said};
  } else {
    fail("rank " + std::to_string(index) + ": " + said);
  }
}

bool Supervisor::hear_from(int index) {
  const auto packet = next_packet(index);
  if (!packet) return false;
  if (packet->empty()) {
    bury(index, Deadline::in(kBurialSeconds));
    return true;
  }
  take(index, *packet);
  return false;
}

void Supervisor::hear_last_words() {
  for (size_t index = 0; index < members_.size(); ++index) {
    if (members_[index].report < 0) continue;
    for (auto packet = next_packet(static_cast<int>(index)); packet && !packet->empty();
         packet = next_packet(static_cast<int>(index))) {
      take(static_cast<int>(index), *packet);
    }
  }
}

// A process whose end of the report is closed has ended or is about to; one that a driver holds back is left to the system.
void Supervisor::bury(int index, const Deadline& patience) {
  Member& member = members_[index];
  const std::string who = "rank " + std::to_string(index) + " (pid " + std::to_string(member.pid) + ") ";
  int status = 0;
  pid_t found = 0;
  while ((found = waitpid(member.pid, &status, WNOHANG)) == 0 && !patience.has_passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (found == 0) {
    fail(who + "does not end, seconds after its last word");
  } else if (WIFSIGNALED(status) || (status != 0 && end_.outcome == Outcome::well)) {
    fail(who + describe_end(status));
  }
  close(member.report);
  member = {};
}

// The supervisor may hear ranks that waited for the dead before it sees the dead end: a dying process closes its connections
// one by one.
void Supervisor::blame_dead_members() {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (size_t index = 0; index < members_.size(); ++index) {
    Member& member = members_[index];
    int status = 0;
    if (member.pid <= 0 || waitpid(member.pid, &status, WNOHANG) <= 0) continue;
    if (WIFSIGNALED(status)) {
      fail("rank " + std::to_string(index) + " (pid " + std::to_string(member.pid) + ") " + describe_end(status));
    }
    close(member.report);
    member = {};
  }
}

void Supervisor::end_all() {
  if (end_.outcome == Outcome::failed) blame_dead_members();
  for (const Member& member : members_) {
    if (member.pid > 0) kill(member.pid, SIGKILL);
  }
  // The supervisor killed these itself, so their ends tell nothing new.
  const TeamEnd known = end_;
  const Deadline patience = Deadline::in(kBurialSeconds);
  for (size_t index = 0; index < members_.size(); ++index) {
    if (members_[index].pid > 0) bury(static_cast<int>(index), patience);
  }
  if (known.outcome != Outcome::well) end_ = known;
}

}  // namespace

TeamEnd run_team(int ranks, double seconds, const std::function<void(Rank&)>& part,
                 const std::function<void(const Row&)>& hear) {
  if (ranks < 1 || ranks > kMostRanks) throw std::invalid_argument("a team has 1 to 8 ranks, not " + std::to_string(ranks));
  Supervisor supervisor(ranks, seconds, hear);
  supervisor.start(part);
  return supervisor.attend();
}

}  // namespace fccl::gpu
