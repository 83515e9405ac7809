// How ranks are started, watched and judged.
#include "processes/ranks.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

namespace fccl::core::testing {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

void run_one(const Seat& seat, const char* kind, const std::function<void(const Seat&)>& body) {
  SCOPED_TRACE(std::string(kind) + " rank " + std::to_string(seat.rank) + " of " + std::to_string(seat.ranks));
  try {
    body(seat);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

void run_threads(const Launch& launch, const std::function<void(const Seat&)>& body) {
  ASSERT_TRUE(launch.host_of.empty()) << "threads share an environment, and so a host";
  Whiteboard board;
  std::mutex mutex;
  std::condition_variable ended;
  int running = launch.ranks;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < launch.ranks; ++rank)
    threads.emplace_back([&, rank] {
      run_one({rank, launch.ranks, board}, "thread", body);
      const std::lock_guard lock(mutex);
      --running;
      ended.notify_all();
    });
  std::unique_lock lock(mutex);
  const std::chrono::seconds limit = launch.limit * kSlowdown;
  if (!ended.wait_for(lock, limit, [&] { return running == 0; })) {
    std::printf("%d of %d ranks have not ended after %lld s\n", running, launch.ranks, static_cast<long long>(limit.count()));
    std::fflush(stdout);
    std::_Exit(1);
  }
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit status " + std::to_string(WEXITSTATUS(status));
}

void judge(const Launch& launch, int rank, int status) {
  if (std::ranges::count(launch.killed, rank) > 0 && launch.by_signal != 0) {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == launch.by_signal)
        << "rank " << rank << " should have been killed, but " << describe_status(status);
  } else {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process rank " << rank << " " << describe_status(status);
  }
}

// Waits for all children; those that are late are killed.
void wait_for_children(const Launch& launch, const std::vector<pid_t>& children) {
  const std::chrono::seconds limit = launch.limit * kSlowdown;
  const Clock::time_point end = Clock::now() + limit;
  std::vector<bool> done(children.size());
  bool late = false;
  for (size_t left = children.size(); left > 0; std::this_thread::sleep_for(1ms)) {
    if (!late && Clock::now() > end) {
      late = true;
      for (size_t rank = 0; rank < children.size(); ++rank)
        if (!done[rank]) {
          ADD_FAILURE() << "process rank " << rank << " has not ended after " << limit.count() << " s";
          kill(children[rank], SIGKILL);
        }
    }
    for (size_t rank = 0; rank < children.size(); ++rank) {
      int status = 0;
      if (done[rank] || waitpid(children[rank], &status, WNOHANG) != children[rank]) continue;
      done[rank] = true;
      --left;
      judge(launch, static_cast<int>(rank), status);
    }
  }
}

void run_processes(const Launch& launch, const std::function<void(const Seat&)>& body) {
  ASSERT_EQ(count_threads(), 1) << "a process may fork only while it has one thread: run each test by itself, as ctest does";
  void* memory = mmap(nullptr, sizeof(Whiteboard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* board = new (memory) Whiteboard;
  const pid_t parent = getpid();
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < launch.ranks; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0) << "fork failed";
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) std::_Exit(1);
      if (!launch.host_of.empty()) setenv("FCCL_HOST_ID", ("host" + std::to_string(launch.host_of[rank])).c_str(), 1);
      run_one({rank, launch.ranks, *board}, "process", body);
      std::exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  wait_for_children(launch, children);
  munmap(memory, sizeof(Whiteboard));
}

// One at a time: to look into the folder of descriptors takes a descriptor, which another rank would count.
int count_entries(const char* folder) {
  static std::mutex counting;
  const std::lock_guard lock(counting);
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<int>(std::distance(begin(entries), end(entries)));
}

}  // namespace

std::vector<RanksAs> every_kind() {
#ifdef FCCL_RANKS_AS_THREADS_ONLY
  return {RanksAs::threads};
#else
  return {RanksAs::threads, RanksAs::processes};
#endif
}

std::string name_of(RanksAs kind) { return kind == RanksAs::threads ? "threads" : "processes"; }

void Seat::meet() const {
  const int meeting = board.meetings.load();
  if (board.arrived.fetch_add(1) + 1 == ranks) {
    board.arrived.store(0);
    board.meetings.fetch_add(1);
    return;
  }
  // Long enough that very many do not keep each other from coming.
  const auto nap = std::max(50us, ranks * 5us);
  for (const Clock::time_point end = Clock::now() + 30s; board.meetings.load() == meeting; std::this_thread::sleep_for(nap))
    if (Clock::now() > end) throw std::runtime_error("not all ranks came to the meeting");
}

void run_ranks(const Launch& launch, const std::function<void(const Seat&)>& body) {
  launch.as == RanksAs::threads ? run_threads(launch, body) : run_processes(launch, body);
}

fcclUniqueId agree_on_id(const Seat& seat) {
  if (seat.rank == 0)
    if (const fcclResult_t made = fcclGetUniqueId(&seat.board.id); made != fcclSuccess)
      throw std::runtime_error(std::string("no unique id: ") + fcclGetLastError(nullptr));
  seat.meet();
  const fcclUniqueId id = seat.board.id;
  seat.meet();
  return id;
}

fcclConfig_t config_of_tests() {
  fcclConfig_t config = FCCL_CONFIG_INITIALIZER;
  config.timeoutMs = 25'000;
  config.initTimeoutMs = 25'000;
  return config;
}

Comm::Comm(const Seat& seat, fcclConfig_t config) {
  const fcclUniqueId id = agree_on_id(seat);
  if (fcclCommInitRankConfig(&comm_, seat.ranks, id, seat.rank, &config) != fcclSuccess)
    throw std::runtime_error(std::string("no communicator: ") + fcclGetLastError(nullptr));
}

::testing::AssertionResult succeeded(fcclResult_t result) {
  if (result == fcclSuccess) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << fcclGetErrorString(result) << " (" << result << "): " << fcclGetLastError(nullptr);
}

int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count(); }

double ms_since(int64_t then_ns) { return static_cast<double>(now_ns() - then_ns) * 1e-6; }

double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

double slowness() {
  constexpr double kWork = 0.03;
  const int64_t began = now_ns();
  const double from = processor_seconds();
  double used = 0;
  while (used < kWork) used = processor_seconds() - from;
  return ms_since(began) * 1e-3 / used;
}

::testing::AssertionResult in_time(int64_t then_ns, double ms) {
  const double took = ms_since(then_ns), allowed = ms * kSlowdown;
  if (took < allowed) return ::testing::AssertionSuccess();
  const double slower = std::max(slowness(), 1.0);
  if (took < 1.5 * allowed * slower) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "it took " << took << " ms of " << allowed << ", on a machine that is " << slower
                                       << " times as slow as an idle one";
}

Setting::Setting(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }

Setting::~Setting() { unsetenv(name_); }

void leave_a_child_behind(std::chrono::milliseconds longer) {
  const pid_t parent = getpid();
  if (fork() != 0) return;
  while (getppid() == parent) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(longer);
  _exit(0);
}

int count_descriptors() { return count_entries("/proc/self/fd"); }

int count_threads() { return count_entries("/proc/self/task"); }

}  // namespace fccl::core::testing
