// How a run is started, disturbed and watched.
#include "faults/supervisor.h"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "faults/part.h"

namespace fccl::core::faults {
namespace {

using namespace std::chrono_literals;
using testing::ms_since;
using testing::now_ns;

constexpr auto kLimit = std::chrono::seconds(60) * testing::kSlowdown;
// How long after the deadline a stopped rank is let go on at last.
constexpr auto kLongestStop = 8s;

std::set<std::string> shared_files() {
  std::set<std::string> files;
  for (const char* folder : {"/dev/shm", "/tmp"})
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path().string());
  return files;
}

[[noreturn]] void be_rank(const Draw& draw, int rank, Board& board, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // A sanitizer's handler would make an exit of the signal.
  std::signal(SIGSEGV, SIG_DFL);
  try {
    Part(draw, rank, board).play();
  } catch (const std::exception& error) {
    std::printf("rank %d: %s\n", rank, error.what());
    std::fflush(stdout);
    _exit(1);
  }
  std::exit(board.reports[rank].complaint[0] == 0 ? 0 : 1);
}

// One run: its processes, and how far its fault has come.
class Run {
 public:
  Run(const Draw& draw, Board& board) : draw_(draw), board_(board) {}

  Observation watch() {
    start();
    const int64_t begin = now_ns();
    while (living_ > 0) {
      notice_ends();
      disturb();
      if (seen_.hang.empty() && ms_since(begin) > std::chrono::milliseconds(kLimit).count()) give_up();
    }
    // Whatever a rank started would be this process's child by now.
    while (waitpid(-1, nullptr, 0) > 0) seen_.leftovers += " a process";
    return seen_;
  }

 private:
  enum class Phase { before, stopped, over };

  void start() {
    std::fflush(nullptr);
    for (int rank = 0; rank < draw_.ranks; ++rank) {
      const pid_t parent = getpid();
      const pid_t child = fork();
      if (child == 0) be_rank(draw_, rank, board_, parent);
      if (child < 0) throw std::runtime_error("fork failed");
      seen_.pids[rank] = child;
      watched_.push_back({static_cast<int>(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0});
      ++living_;
    }
  }

  void notice_ends() {
    poll(watched_.data(), watched_.size(), 1);
    for (int rank = 0; rank < draw_.ranks; ++rank) {
      if (watched_[rank].fd < 0 || watched_[rank].revents == 0) continue;
      seen_.gone_ns[rank] = now_ns();
      waitpid(seen_.pids[rank], &seen_.statuses[rank], 0);
      close(std::exchange(watched_[rank].fd, -1));
      --living_;
    }
    board_.gone = of_victims([&](int rank) { return seen_.gone_ns[rank] != 0; });
  }

  void disturb() {
    switch (phase_) {
      case Phase::before:
        return begin_fault();
      case Phase::stopped:
        return end_stop();
      case Phase::over:
        return;
    }
  }

  void begin_fault() {
    const int signal = signal_of_fault();
    const bool early = draw_.moment == Moment::before_init || draw_.moment == Moment::in_init;
    const Stage wanted = early ? Stage::joining : Stage::at_moment;
    if (signal == 0 || !of_victims([&](int rank) { return board_.reports[rank].stage.load() >= wanted; })) return;
    // Closer to the chosen time than the millisecond of a round.
    std::this_thread::sleep_for(draw_.delay);
    of_victims([&](int rank) { return seen_.gone_ns[rank] != 0 || kill(seen_.pids[rank], signal) == 0; });
    seen_.fault_ns = now_ns();
    phase_ = draw_.stops() ? Phase::stopped : Phase::over;
  }

  void end_stop() {
    const bool brief = draw_.fault == Fault::stop_briefly;
    const double stopped = ms_since(seen_.fault_ns);
    if (brief && stopped < static_cast<double>(draw_.pause.count())) return;
    if (!brief && stopped < static_cast<double>(longest_stop().count()) && !all_others_failed()) return;
    kill(seen_.pids[draw_.victim], SIGCONT);
    board_.over = true;
    phase_ = Phase::over;
  }

  std::chrono::milliseconds longest_stop() const { return std::max(draw_.deadline, draw_.init_deadline) + kLongestStop; }

  bool all_others_failed() const {
    for (int rank = 0; rank < draw_.ranks; ++rank)
      if (!draw_.is_victim(rank) && board_.reports[rank].failed_ns == 0) return false;
    return true;
  }

  int signal_of_fault() const {
    switch (draw_.fault) {
      case Fault::kill:
      case Fault::kill_two:
        return SIGKILL;
      case Fault::segv:
        return SIGSEGV;
      case Fault::stop_briefly:
      case Fault::stop_for_long:
        return SIGSTOP;
      default:
        return 0;
    }
  }

  template <class Ask>
  bool of_victims(const Ask& ask) const {
    bool all = true;
    for (int rank = 0; rank < draw_.ranks; ++rank)
      if (draw_.is_victim(rank)) all = ask(rank) && all;
    return all;
  }

  void give_up() {
    for (int rank = 0; rank < draw_.ranks; ++rank) {
      if (watched_[rank].fd < 0) continue;
      const Report& report = board_.reports[rank];
      seen_.hang += " rank " + std::to_string(rank) + " (stage " + std::to_string(static_cast<int>(report.stage.load())) +
                    ", call " + std::to_string(report.iteration.load()) + ")";
      kill(seen_.pids[rank], SIGKILL);
    }
  }

  const Draw& draw_;
  Board& board_;
  Observation seen_;
  std::vector<pollfd> watched_;
  int living_ = 0;
  Phase phase_ = Phase::before;
};

bool mount_empty(const char* folder) { return mount("fccl-faults", folder, "tmpfs", 0, nullptr) == 0; }

}  // namespace

Observation supervise(const Draw& draw, Board& board) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::set<std::string> before = shared_files();
  Observation seen = Run(draw, board).watch();
  for (const std::string& file : shared_files())
    if (!before.contains(file)) seen.leftovers += " " + file;
  return seen;
}

bool hide_files_of_others() {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount_empty("/dev/shm") && mount_empty("/tmp");
}

}  // namespace fccl::core::faults
