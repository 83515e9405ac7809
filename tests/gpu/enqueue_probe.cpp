// Question 6: what does it cost the host to enqueue a whole program of a collective, 8 peers times 8 slices of wait, copy and
// write?
#include <string>
#include <vector>

#include "device_probe.h"
#include "flags.h"
#include "kernels.h"
#include "samples.h"
#include "verify.h"

namespace {

using namespace fccl::gpu;

constexpr int kPeers = 8, kSlices = 8, kSteps = kPeers * kSlices;
constexpr size_t kSliceBytes = 256 << 10;
constexpr int kRepeats = 30;
constexpr uint32_t kSeed = 6;
constexpr double kPatience = 12;       // seconds that a case has
constexpr double kReleaseSeconds = 3;  // within which streams end whose flags are released

// The memory of the program: for each step a flag that it awaits, one that it writes, and a slice that it copies.
struct Program {
  explicit Program(std::span<std::byte> shared) : flags(shared), from(kSteps * kSliceBytes), to(kSteps * kSliceBytes) {
    const Stream stream = make_stream();
    launch_fill(stream.get(), from.get(), from.size(), kSeed);
    drain(stream, Deadline::in(kPatience), "filling the slices");
  }
  CUdeviceptr awaited(int step) const { return flags.device(step); }
  CUdeviceptr written(int step) const { return flags.device(kSteps + step); }
  void copy(const Stream& stream, int step) const {
    GPU_CHECK(cudaMemcpyAsync(to.at(step * kSliceBytes), from.at(step * kSliceBytes), kSliceBytes, cudaMemcpyDeviceToDevice,
                              stream.get()));
  }

  Flags flags;
  DeviceMemory from, to;
};

// Three calls for each step.
void enqueue_singly(const Program& program, const Stream& stream) {
  for (int step = 0; step < kSteps; ++step) {
    enqueue_wait(stream, program.awaited(step), 1);
    program.copy(stream, step);
    enqueue_write(stream, program.written(step), 1);
  }
}

// For each slice one batch of waits for all peers, one call for the copies, one batch of writes; flags are reset as they are
// consumed.
void enqueue_batched(const Program& program, const Stream& stream) {
  for (int slice = 0; slice < kSlices; ++slice) {
    std::vector<CUstreamBatchMemOpParams> waits, writes;
    std::vector<void*> to;
    std::vector<const void*> from;
    for (int peer = 0; peer < kPeers; ++peer) {
      const int step = slice * kPeers + peer;
      waits.push_back(wait_operation(program.awaited(step), 1));
      waits.push_back(write_operation(program.awaited(step), 0));
      to.push_back(program.to.at(step * kSliceBytes));
      from.push_back(program.from.at(step * kSliceBytes));
      writes.push_back(write_operation(program.written(step), 1));
    }
    std::vector<size_t> sizes(kPeers, kSliceBytes);
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    enqueue_batch(stream, waits);
    GPU_CHECK(cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), to.size(), &attributes, &first, 1, stream.get()));
    enqueue_batch(stream, writes);
  }
}

// As a batch, but with one call for each copy, which is what a captured stream takes.
void enqueue_half_batched(const Program& program, const Stream& stream) {
  for (int slice = 0; slice < kSlices; ++slice) {
    std::vector<CUstreamBatchMemOpParams> waits, writes;
    for (int peer = 0; peer < kPeers; ++peer) {
      const int step = slice * kPeers + peer;
      waits.push_back(wait_operation(program.awaited(step), 1));
      waits.push_back(write_operation(program.awaited(step), 0));
      writes.push_back(write_operation(program.written(step), 1));
    }
    enqueue_batch(stream, waits);
    for (int peer = 0; peer < kPeers; ++peer) program.copy(stream, slice * kPeers + peer);
    enqueue_batch(stream, writes);
  }
}

void set_awaited(const Program& program, uint32_t value) {
  for (int step = 0; step < kSteps; ++step) program.flags.host(step).store(value, std::memory_order_release);
}

void forget_written(const Program& program) {
  for (int step = 0; step < kSteps; ++step) program.flags.host(kSteps + step).store(0, std::memory_order_release);
}

// The host's time to enqueue the program, and the time from the first flag to the last answer. A stream that waits at its first
// operation meanwhile is what a collective finds; one that need not wait shows what the driver alone costs.
template <class Enqueue>
void measure(Rank& rank, const std::string& how, const Enqueue& enqueue) {
  const Program program(rank.shared());
  const Stream stream = make_stream();
  const Deadline deadline = Deadline::in(kPatience + kReleaseSeconds);
  const Watchdog watchdog(program.flags, Deadline::in(kPatience));
  for (const bool blocked : {false, true}) {
    const std::string which = how + (blocked ? ", on a stream that waits" : ", on a stream that need not wait");
    Samples host, whole;
    unsigned long long wrong = 0;
    bool answered = true;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      GPU_CHECK(cudaMemsetAsync(program.to.get(), 0xff, program.to.size(), stream.get()));
      drain(stream, deadline, "poisoning the slices");
      forget_written(program);
      set_awaited(program, blocked ? 0 : 1);
      const auto begin = Clock::now();
      enqueue(program, stream);
      host.add(seconds_since(begin) * 1e6);
      if (watchdog.has_bitten()) {
        drain(stream, deadline, "a program whose flags were released");
        return rank.report(
            unsupported("enqueuing " + which, "a call returned only when the flags were released: the queue was full"));
      }
      const auto released = Clock::now();
      if (blocked) set_awaited(program, 1);
      drain(stream, deadline, "a whole program");
      whole.add(seconds_since(blocked ? released : begin) * 1e6);
      for (int step = 0; step < kSteps; ++step) answered = answered && program.flags.host(kSteps + step).load() == 1;
      wrong += wrong_words(stream, program.to.get(), program.to.size(), kSeed);
    }
    watchdog.require_quiet(which.c_str());
    if (wrong != 0 || !answered) rank.report(works(which, false, std::to_string(wrong) + " words did not arrive"));
    rank.report(host.row("enqueuing " + which, "us", "8 peers x 8 slices of wait, copy 256 KiB, write"));
    rank.report(whole.row("running " + which, "us", blocked ? "from the flags on" : "from the first call on"));
  }
}

void singly(Rank& rank) { measure(rank, "call by call", enqueue_singly); }
void half_batched(Rank& rank) { measure(rank, "batched flags, single copies", enqueue_half_batched); }
void batched(Rank& rank) { measure(rank, "batched flags, batched copies", enqueue_batched); }

// A program captured once and launched again: what a collective in a CUDA graph costs.
void as_graph(Rank& rank) {
  GraphRun run;
  measure(rank, "a launched graph", [&run](const Program& program, const Stream& stream) {
    if (run.get() == nullptr) {
      const Graph graph = capture([&](const Stream& captured) { enqueue_half_batched(program, captured); });
      cudaGraphExec_t made = nullptr;
      GPU_CHECK(cudaGraphInstantiate(&made, graph.get(), 0));
      run = GraphRun(made);
    }
    GPU_CHECK(cudaGraphLaunch(run.get(), stream.get()));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return run_probe(6,
                   {{"call by call", 1, 60, singly},
                    {"batched flags", 1, 60, half_batched},
                    {"batched flags and copies", 1, 60, batched},
                    {"a graph", 1, 60, as_graph}},
                   argc, argv);
}
