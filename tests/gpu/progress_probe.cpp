// Question 3: do two processes whose streams wait for each other's flags progress without MPS, and at what round-trip time?
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device_probe.h"
#include "flags.h"
#include "kernels.h"
#include "lending.h"
#include "samples.h"

namespace {

using namespace fccl::gpu;

constexpr int kRounds = 1000;
constexpr int kEnqueuedRounds = 20;
constexpr double kEnoughSeconds = 8;  // after which no more rounds are begun
constexpr int kKernelRounds = 100;
constexpr double kPatience = 15;                // seconds that a step has
constexpr double kReleaseSeconds = 3;           // within which streams end whose flags are released
constexpr uint64_t kSpinLimitNs = 200'000'000;  // the longest wait of a kernel
// Flags in the memory that the processes share.
constexpr size_t kPing = 0, kPong = 1, kReached = 2, kStop = 4, kStarted = 8;  // the last: and those behind it
constexpr size_t kEnough = kSharedBytes / kFlagStride - 1;

constexpr const char* kPortion = "enqueuing included; each the mean of 20 rounds";

void report_mps(Rank& rank) {
  const bool runs = std::filesystem::exists("/tmp/nvidia-mps/control") || std::getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr;
  rank.report(runs ? works("MPS", true, "its control pipe is there, or is named by the environment")
                   : unsupported("MPS", "is not there"));
}

// True if the time for rounds is over: all ranks get the same answer, and each asks after each portion.
bool is_enough(Rank& rank, Clock::time_point begin) {
  auto& enough = *reinterpret_cast<std::atomic<uint32_t>*>(rank.shared().subspan(kEnough * kFlagStride).data());
  if (rank.index() == 0 && seconds_since(begin) > kEnoughSeconds) enough = 1;
  rank.meet("all know whether more rounds follow");
  return enough != 0;
}

// Rounds of the two streams, enqueued in portions that begin together. `mine` is what this rank's stream writes, `theirs` what
// it awaits.
Samples exchange(Rank& rank, CUdeviceptr mine, CUdeviceptr theirs) {
  const Stream stream = make_stream();
  const Deadline deadline = Deadline::in(kPatience + kReleaseSeconds);
  Samples seconds;
  const auto first = Clock::now();
  for (uint32_t round = 1; round <= kRounds; round += kEnqueuedRounds) {
    rank.meet("both processes enqueue the same rounds");
    const auto begin = Clock::now();
    for (uint32_t each = round; each < round + kEnqueuedRounds; ++each) {
      if (rank.index() == 0) enqueue_write(stream, mine, each);
      enqueue_wait(stream, theirs, each);
      if (rank.index() == 1) enqueue_write(stream, mine, each);
    }
    drain(stream, deadline, "the other process's flags");
    seconds.add(seconds_since(begin) / kEnqueuedRounds * 1e6);
    if (is_enough(rank, first)) break;
  }
  return seconds;
}

void exchange_in_host_memory(Rank& rank, const char* beside) {
  const Flags flags(rank.shared());
  const Watchdog watchdog(flags, Deadline::in(kPatience));
  const bool first = rank.index() == 0;
  const Samples seconds = exchange(rank, flags.device(first ? kPing : kPong), flags.device(first ? kPong : kPing));
  watchdog.require_quiet("two processes' streams that wait for each other");
  rank.meet("both have ended their rounds");
  if (!first) return;
  rank.report(works(std::string("two processes' streams progress") + beside, true));
  rank.report(seconds.row(std::string("round trip by flags in host memory") + beside, "us", kPortion));
}

void streams_by_host_memory(Rank& rank) {
  if (rank.index() == 0) report_mps(rank);
  exchange_in_host_memory(rank, "");
}

// Each process's flag lies in its own device memory, and the other one writes it there.
void streams_by_device_memory(Rank& rank) {
  const int other = 1 - rank.index();
  const DeviceMemory own(2 << 20);
  GPU_CHECK(cudaMemset(own.get(), 0, kFlagStride));
  GPU_CHECK(cudaDeviceSynchronize());
  lend(rank, other, own);
  auto theirs = std::make_unique<IpcMapping>(borrow_by_ipc(rank, other));
  const CUdeviceptr awaited = address_of(own.get());
  const Stream releasing = make_stream();
  const auto release = [awaited, &releasing] {
    const uint32_t value = kReleased;
    cudaMemcpyAsync(pointer_to(awaited), &value, sizeof(value), cudaMemcpyHostToDevice, releasing.get());
  };
  {
    const Watchdog watchdog(release, Deadline::in(kPatience));
    const Samples seconds = exchange(rank, address_of(theirs->get()), awaited);
    watchdog.require_quiet("two processes' streams that write into each other's memory");
    if (rank.index() == 0) {
      rank.report(works("two processes' streams progress, flags in the peer's device memory", true));
      rank.report(seconds.row("round trip by flags in the peer's device memory", "us", kPortion));
    }
  }
  theirs.reset();
  rank.meet("nobody gives memory back that another one maps");
}

// The same game between a resident kernel of each process: what time slices cost those who spin.
void kernels_by_host_memory(Rank& rank) {
  const Flags flags(rank.shared());
  const Watchdog watchdog(flags, Deadline::in(kPatience));
  const bool first = rank.index() == 0;
  const size_t reached = kReached + static_cast<size_t>(rank.index());
  const Stream stream = make_stream();
  rank.meet("both processes launch their kernel");
  const auto begin = Clock::now();
  launch_echo(stream.get(), {flags.kernel(first ? kPong : kPing), flags.kernel(first ? kPing : kPong), kKernelRounds, first,
                             kSpinLimitNs, flags.kernel(reached)});
  drain(stream, Deadline::in(kPatience + kReleaseSeconds), "two kernels that wait for each other");
  const double seconds = seconds_since(begin);
  watchdog.require_quiet("two kernels that wait for each other");
  rank.meet("both kernels have ended");
  if (!first) return;
  const uint32_t rounds = flags.host(reached).load();
  const std::string note = std::to_string(rounds) + " of 100 rounds; a kernel's wait ends after 200 ms";
  if (rounds == kKernelRounds) {
    rank.report(works("two processes' kernels that wait for each other", true, note));
  } else {
    rank.report(unsupported("two processes' kernels that wait for each other", note));
  }
  if (rounds > 0) rank.report(measured("round trip of two kernels", seconds / rounds * 1e6, "us", note));
}

// A third process fills all SMs meanwhile: whose turn must it be for a flag to be seen?
void streams_beside_a_kernel(Rank& rank) {
  constexpr uint64_t kOccupationNs = 3'000'000'000;
  if (rank.index() < 2) {
    rank.meet("the third process's kernel runs");
    exchange_in_host_memory(rank, ", beside a third process's kernel on all SMs");
    return;
  }
  const Flags flags(rank.shared());
  const Stream stream = make_stream();
  const Occupation occupation{flags.kernel(kStarted), Flags::kStrideWords, flags.kernel(kStop), kOccupationNs};
  const int blocks = launch_occupation(stream.get(), occupation);
  for (int block = 0; block < blocks; ++block) flags.wait(kStarted + block, 1, rank.deadline(), "a block on each SM");
  const auto begin = Clock::now();
  rank.meet("the third process's kernel runs");
  for (int round = 0; round < kRounds; round += kEnqueuedRounds) {
    rank.meet("both processes enqueue the same rounds");
    if (is_enough(rank, begin)) break;
  }
  rank.meet("both have ended their rounds");
  const double seconds = seconds_since(begin);
  const bool overlapped = !is_done_by(stream, Deadline::in(0));
  flags.host(kStop).store(1, std::memory_order_release);
  drain(stream, rank.deadline(), "the kernel on all SMs");
  rank.report(measured("all rounds took", seconds, "s",
                       overlapped ? "the kernel was there to their end" : "the kernel had reached its limit of 3 s before"));
}

// Aborts after a death: a stream waits for a process that is gone.
void outlive_a_partner(Rank& rank) {
  const Flags flags(rank.shared());
  if (rank.index() == 1) {
    const Stream stream = make_stream();
    enqueue_wait(stream, flags.device(kPong), 1);
    rank.meet("both streams wait");
    std::_Exit(0);
  }
  const Stream stream = make_stream();
  enqueue_wait(stream, flags.device(kPing), 1);
  rank.meet("both streams wait");
  rank.wait_for_end_of(1);
  const bool held = !is_done_by(stream, Deadline::in(0.2));
  const auto begin = Clock::now();
  {
    const Watchdog watchdog(flags, Deadline::in(0));
    drain(stream, Deadline::in(kPatience), "a stream whose partner has ended");
  }
  rank.report(works("a stream waits on when the process that owes it a flag has ended", held));
  rank.report(measured("releasing it", seconds_since(begin) * 1e6, "us"));
}

}  // namespace

int main(int argc, char** argv) {
  return run_probe(3,
                   {{"streams, flags in host memory", 2, 30, streams_by_host_memory},
                    {"streams, flags in device memory", 2, 30, streams_by_device_memory},
                    {"streams beside a full GPU", 3, 40, streams_beside_a_kernel},
                    {"kernels that spin", 2, 40, kernels_by_host_memory},
                    {"a partner that ends", 2, 20, outlive_a_partner}},
                   argc, argv);
}
