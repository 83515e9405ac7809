// Question 7: whom does the driver keep waiting while a stream waits: a thread that finds its queue full, others beside it, one
// in a set-up function, a process that ends?
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "device_probe.h"
#include "flags.h"

namespace {

using namespace fccl::gpu;

constexpr double kPatience = 15;  // seconds after which flags are released, whatever happens
constexpr double kMoment = 1;     // by which a call that waits for nothing has returned
constexpr size_t kBytes = 1 << 20;
constexpr int kMostEntries = 20000;

// One call on a thread of its own, which may be kept waiting. The flags must have been released when it is destroyed.
class Attempt {
 public:
  explicit Attempt(std::function<void()> call)
      : thread_([this, call = std::move(call)] {
          cudaSetDevice(0);
          call();
          has_returned_ = true;
        }) {}
  ~Attempt() { thread_.join(); }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // The seconds that it took; none if it has not returned within a moment.
  std::optional<double> returned() const {
    const auto begin = Clock::now();
    while (!has_returned_) {
      if (seconds_since(begin) > kMoment) return std::nullopt;
      std::this_thread::yield();
    }
    return seconds_since(begin);
  }

 private:
  std::atomic<bool> has_returned_ = false;
  std::thread thread_;
};

void report(Rank& rank, const std::string& what, const std::optional<double>& seconds) {
  if (seconds) return rank.report(works(what, true, "returned within " + std::to_string(*seconds * 1e3) + " ms"));
  rank.report(unsupported(what, "did not return within 1 s, while the stream waited"));
}

// Reports the calls that a thread can still make beside one that is kept waiting.
void report_neighbours(Rank& rank, const Flags& flags, const Stream& other, const std::string& beside) {
  const Attempt asking([&] { static_cast<void>(cudaStreamQuery(other.get())); });
  report(rank, "asking whether another stream is done, beside " + beside, asking.returned());
  const Attempt enqueuing([&] { enqueue_write(other, flags.device(2), 1); });
  report(rank, "enqueuing on another stream, beside " + beside, enqueuing.returned());
  flags.host(0).store(kReleased, std::memory_order_release);
}

// One thread enqueues behind a wait until there is no room; others call CUDA meanwhile.
void full_queue(Rank& rank) {
  const Flags flags(rank.shared());
  const Stream full = make_stream(), other = make_stream();
  const Watchdog watchdog(flags, Deadline::in(kPatience));
  std::atomic<int> entries = 0;
  enqueue_wait(full, flags.device(0), 1);
  {
    const Attempt filling([&] {
      for (; entries < kMostEntries && !watchdog.has_bitten(); ++entries) enqueue_write(full, flags.device(1), 1);
    });
    int seen = -1;
    while (seen != entries) {
      seen = entries;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    const bool is_full = seen < kMostEntries;
    if (is_full) rank.report(measured("entries until a thread waits for room in its stream", seen, "entries"));
    if (!is_full) rank.report(works("20000 entries behind a wait", true, "no thread had to wait for room"));
    report_neighbours(rank, flags, other, is_full ? "a thread that waits for room" : "a stream with 20000 entries");
  }
  drain(full, Deadline::in(kPatience), "a full stream whose flag was released");
  drain(other, Deadline::in(kPatience), "a stream beside it");
  watchdog.require_quiet("a full queue");
}

// One call of a set-up function while a stream waits, and what others can do beside it.
void try_set_up(Rank& rank, const Flags& flags, const std::string& name, const std::function<void()>& call) {
  const Stream waiting = make_stream(), other = make_stream();
  flags.set_all(0);
  enqueue_wait(waiting, flags.device(0), 1);
  {
    const Attempt setting_up(call);
    const auto returned = setting_up.returned();
    report(rank, name + " while a stream waits", returned);
    if (!returned) report_neighbours(rank, flags, other, "a thread in " + name);
    flags.host(0).store(kReleased, std::memory_order_release);
  }
  drain(waiting, Deadline::in(kPatience), name.c_str());
  drain(other, Deadline::in(kPatience), name.c_str());
}

void set_up_functions(Rank& rank) {
  const Flags flags(rank.shared());
  const Watchdog watchdog(flags, Deadline::in(2 * kPatience));
  void* memory = nullptr;
  void* page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cudaStream_t stream = nullptr;
  try_set_up(rank, flags, "cudaMalloc", [&] { cudaMalloc(&memory, kBytes); });
  try_set_up(rank, flags, "cudaFree", [&] { cudaFree(memory); });
  try_set_up(rank, flags, "cudaHostRegister", [&] { cudaHostRegister(page, kBytes, cudaHostRegisterMapped); });
  try_set_up(rank, flags, "cudaHostUnregister", [&] { cudaHostUnregister(page); });
  try_set_up(rank, flags, "cudaStreamCreate", [&] { cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); });
  try_set_up(rank, flags, "cudaStreamDestroy", [&] { cudaStreamDestroy(stream); });
  watchdog.require_quiet("set-up functions");
}

// Rank 1 ends by `end` while one of its streams waits; rank 0, which can release the stream, sees how long that takes.
void leave_while_a_stream_waits(Rank& rank, const std::string& name, void (*end)(int)) {
  constexpr double kUntilReleased = 5;
  const Flags flags(rank.shared());
  if (rank.index() == 1) {
    const Stream stream = make_stream();
    enqueue_wait(stream, flags.device(0), 1);
    rank.meet("a stream waits");
    end(0);
  }
  rank.meet("a stream waits");
  const auto begin = Clock::now();
  const Watchdog watchdog(flags, Deadline::in(kUntilReleased));
  rank.wait_for_end_of(1);
  if (watchdog.has_bitten()) {
    rank.report(unsupported(name + " while a stream waits", "the process ended only when the stream was released"));
  } else {
    rank.report(measured(name + " while a stream waits", seconds_since(begin) * 1e3, "ms"));
  }
}

void exit_of_c(Rank& rank) { leave_while_a_stream_waits(rank, "exit", std::exit); }
void exit_at_once(Rank& rank) { leave_while_a_stream_waits(rank, "_Exit", std::_Exit); }

}  // namespace

int main(int argc, char** argv) {
  return run_probe(7,
                   {{"a full queue", 1, 60, full_queue},
                    {"set-up functions", 1, 60, set_up_functions},
                    {"a process that ends", 2, 30, exit_of_c},
                    {"a process that ends at once", 2, 30, exit_at_once}},
                   argc, argv);
}
