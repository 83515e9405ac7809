// Times of words, copies, contexts and ends; processes that share the GPU.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "first_minute/bare_driver.h"
#include "first_minute/cases.h"

namespace fccl::gpu::bare {

namespace {

using namespace std::chrono_literals;
constexpr size_t kLarge = size_t{64} << 20;
constexpr double kUntilGone = 8000;

// A process of its own, which ends with this one.
pid_t in_a_process(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    body();
  } catch (const std::exception&) {
    _exit(1);
  }
  _exit(0);
}

void open_once(Rank& rank, const char* what) {
  const auto begin = Clock::now();
  int status = 0;
  waitpid(in_a_process(open), &status, 0);
  if (status != 0) throw std::runtime_error(text("a process that opens the GPU ended with status %d", status));
  rank.report(measured(what, ms_since(begin), "ms"));
}

// Words of memory that two processes share.
struct Meeting {
  alignas(64) std::atomic<uint64_t> round[2];
  alignas(64) std::atomic<uint64_t> ready[2];
  alignas(64) std::atomic<bool> over;
};

uint64_t relay(Meeting& meeting, size_t me, double ms) {
  Pinned flags(kPage);
  const CUstream stream = make_stream();
  meeting.ready[me].store(1);
  happens(ms, [&] { return meeting.ready[1 - me].load() != 0; });
  const auto begin = Clock::now();
  uint64_t round = 0;
  while (round < 2000 && ms_since(begin) < ms && !meeting.over.load()) {
    ++round;
    MUST(enqueue(stream, {{false, flags.word_at(0), round}, {true, flags.word_at(1), round}}));
    while (flags.word(0).load() < round) std::this_thread::yield();
    meeting.round[me].store(round);
    while (meeting.round[1 - me].load() < round && !meeting.over.load()) std::this_thread::yield();
    flags.word(1).store(round);
  }
  meeting.over.store(true);
  flags.word(1).store(round + 1);
  drains(stream, 1000);
  return round;
}

}  // namespace

void figures(Rank& rank) {
  open();
  Pinned flags(kPage);
  const Pinned bytes(kLarge);
  const CUdeviceptr memory = device_memory(kLarge);
  const CUstream stream = make_stream();
  std::vector<double> us;
  for (uint64_t number = 1; number <= 300; ++number) {
    MUST(enqueue(stream, {{true, flags.word_at(0), number}, {false, flags.word_at(1), number}}));
    std::this_thread::sleep_for(100us);
    const auto begin = Clock::now();
    flags.word(0).store(number);
    while (flags.word(1).load() < number) std::this_thread::yield();
    us.push_back(ms_since(begin) * 1e3);
  }
  std::ranges::sort(us);
  rank.report(measured("a word of the host to a stream and back, median", us[150], "us", text("90th of 100: %.2f", us[270])));
  for (const bool up : {true, false}) {
    const auto begin = Clock::now();
    for (int i = 0; i < 20; ++i)
      MUST(up ? copy(memory, bytes.device(), kLarge, stream) : copy(bytes.device(), memory, kLarge, stream));
    drains(stream, 10000);
    rank.report(measured(up ? "registered memory to the GPU" : "the GPU to registered memory",
                         20 * static_cast<double>(kLarge) / 1e6 / ms_since(begin), "GB/s"));
  }
  const auto begin = Clock::now();
  for (int i = 0; i < 200; ++i) MUST(enqueue(stream, {{false, flags.word_at(2), 1}, {true, flags.word_at(2), 1}}));
  rank.report(measured("enqueuing two words", ms_since(begin) * 1e3 / 200, "us"));
  drains(stream, 1000);
}

void openings(Rank& rank) {
  open_once(rank, "a process opens the GPU, first");
  open_once(rank, "a process opens the GPU, second");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const pid_t keeper = in_a_process([&] {
    open();
    if (write(ends[1], "o", 1) == 1) pause();
  });
  close(ends[1]);
  char ready = 0;
  const bool is_open = read(ends[0], &ready, 1) == 1;
  if (is_open) open_once(rank, "a process opens the GPU, beside one that keeps it open");
  kill(keeper, SIGKILL);
  waitpid(keeper, nullptr, 0);
}

void two_processes(Rank& rank) {
  auto* const meeting = static_cast<Meeting*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (meeting == MAP_FAILED) throw std::runtime_error("no memory");
  const pid_t child = in_a_process([&] {
    open();
    relay(*meeting, 1, 3000);
  });
  open();
  const auto begin = Clock::now();
  const uint64_t rounds = relay(*meeting, 0, 3000);
  const double us = ms_since(begin) * 1e3 / static_cast<double>(rounds);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  rank.report(measured("a round of two processes' streams, relayed", us, "us",
                       text("%llu rounds, opening included", static_cast<unsigned long long>(rounds))));
}

void ends(Rank& rank) {
  enum class How { by_exit, at_once, by_kill };
  const std::pair<How, const char*> ways[] = {{How::by_exit, "exit"}, {How::at_once, "_exit"}, {How::by_kill, "kill -9"}};
  for (const auto& [how, name] : ways) {
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const pid_t child = in_a_process([&, how = how] {
      open();
      static Pinned flags(kPage);
      MUST(enqueue(make_stream(), {{true, flags.word_at(0), 1}}));
      if (write(pipes[1], "w", 1) != 1) return;
      if (how == How::by_exit) std::exit(0);
      if (how == How::at_once) _exit(0);
      pause();
    });
    close(pipes[1]);
    char ready = 0;
    const bool waits = read(pipes[0], &ready, 1) == 1;
    close(pipes[0]);
    const auto begin = Clock::now();
    if (how == How::by_kill) kill(child, SIGKILL);
    const bool gone = happens(kUntilGone, [&] { return waitpid(child, nullptr, WNOHANG) == child; });
    if (!waits) throw std::runtime_error("the stream of the process did not wait");
    rank.report(gone ? measured(name, ms_since(begin), "ms") : unsupported(name, "NOT gone after 8 s"));
    if (!gone) kill(child, SIGKILL);
  }
}

}  // namespace fccl::gpu::bare
