// Question 2: which stream memory operations are there on host and on device memory, what do they cost, and how fast do they
// react?
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "device_probe.h"
#include "flags.h"
#include "lending.h"
#include "samples.h"

namespace {

using namespace fccl::gpu;

constexpr size_t kLentBytes = 2 << 20;
constexpr int kRounds = 1000;
constexpr int kEnqueuedRounds = 100;  // each of two operations; a stream's queue holds several times as many
constexpr double kPatience = 5;       // seconds that the streams of a step have

// A kind of memory that flags lie in: each goes through the same step.
struct Place {
  std::string name;
  CUdeviceptr at;
};

void report_attributes(Rank& rank) {
  struct Asked {
    const char* name;
    CUdevice_attribute attribute;
    const char* unit = "";
  };
  constexpr Asked kFeatures[] = {
      {"64-bit stream memory operations", CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS},
      {"waiting for NOR", CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR},
      {"flushing remote writes", CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES},
      {"export as a descriptor", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
      {"export as a fabric handle", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED},
      {"cudaIpc", CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED},
      {"cuMem", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
      {"GPUDirect RDMA", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED},
      {"GPUDirect RDMA of cuMem memory", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED},
      {"dma_buf", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED},
      {"preemption of kernels", CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
      {"registered host memory at its own address", CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
  };
  for (const Asked& asked : kFeatures) {
    const bool has = attribute(asked.attribute) != 0;
    rank.report(has ? works(asked.name, true, "the device's attribute") : unsupported(asked.name, "the device's attribute"));
  }
  constexpr Asked kNumbers[] = {
      {"SMs", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {"copy engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
      {"cache", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "bytes"},
  };
  for (const Asked& asked : kNumbers) rank.report(measured(asked.name, attribute(asked.attribute), asked.unit));
  cudaDeviceProp properties{};
  int runtime = 0, newest = 0;
  GPU_CHECK(cudaGetDeviceProperties(&properties, 0));
  GPU_CHECK(cudaRuntimeGetVersion(&runtime));
  GPU_CHECK(cudaDriverGetVersion(&newest));
  const std::string name = std::string(properties.name) + ", compute capability " + std::to_string(properties.major) + "." +
                           std::to_string(properties.minor);
  rank.report(measured("CUDA of the runtime", runtime, "", name));
  rank.report(measured("newest CUDA that the driver serves", newest, "", name));
}

// By which the host looks at flags and sets them behind the back of those that wait. One for all: more streams could come to
// share a queue of the GPU with one that waits.
const Stream& side_stream() {
  static const Stream made = make_stream();
  return made;
}

uint32_t look_at(CUdeviceptr flag) {
  uint32_t value = 0;
  const Stream& other = side_stream();
  GPU_CHECK(cudaMemcpyAsync(&value, pointer_to(flag), sizeof(value), cudaMemcpyDefault, other.get()));
  GPU_CHECK(cudaStreamSynchronize(other.get()));
  return value;
}

void put(CUdeviceptr flag, uint32_t value) {
  const Stream& other = side_stream();
  GPU_CHECK(cudaMemcpyAsync(pointer_to(flag), &value, sizeof(value), cudaMemcpyDefault, other.get()));
  GPU_CHECK(cudaStreamSynchronize(other.get()));
}

// A wait must hold its stream until the flag has the value, and a write must come behind it.
void try_wait_and_write(Rank& rank, const Place& place, const char* how, unsigned wait_flags, bool batched) {
  const std::string what = std::string(how) + " on " + place.name;
  const CUdeviceptr awaited = place.at, written = place.at + kFlagStride;
  put(awaited, 0);
  put(written, 0);
  const Stream stream = make_stream();
  const Watchdog watchdog([awaited] { put(awaited, kReleased); }, Deadline::in(kPatience));
  CUresult result = CUDA_SUCCESS;
  if (batched) {
    CUstreamBatchMemOpParams both[] = {wait_operation(awaited, 1, wait_flags), write_operation(written, 7)};
    result = driver().stream_batch(stream.get(), 2, both, 0);
  } else {
    result = driver().stream_wait_value(stream.get(), awaited, 1, wait_flags);
    if (result == CUDA_SUCCESS) result = driver().stream_write_value(stream.get(), written, 7, CU_STREAM_WRITE_VALUE_DEFAULT);
  }
  if (result != CUDA_SUCCESS) {
    put(awaited, 1);
    return rank.report(unsupported(what, text_of(result)));
  }
  const bool held = !is_done_by(stream, Deadline::in(0.01)) && look_at(written) == 0;
  put(awaited, 1);
  drain(stream, Deadline::in(2 * kPatience), what.c_str());
  watchdog.require_quiet(what.c_str());
  rank.report(works(what, held && look_at(written) == 7, held ? "" : "the wait did not hold the stream"));
}

void try_operations(Rank& rank, const Place& place) {
  try_wait_and_write(rank, place, "wait and write", CU_STREAM_WAIT_VALUE_GEQ, false);
  try_wait_and_write(rank, place, "batched wait and write", CU_STREAM_WAIT_VALUE_GEQ, true);
  try_wait_and_write(rank, place, "wait with a flush", CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH, false);
}

// Measures operations that need not wait, one by one and in batches: the host's time to enqueue, and the stream's to do them.
void measure_cost(Rank& rank, const Place& place) {
  constexpr int kOperations = 256, kRepeats = 20;
  put(place.at, 1);
  const Stream stream = make_stream();
  const Event begin = make_event(), end = make_event();
  for (const bool waits : {true, false}) {
    for (const int batch : {1, 8, 64}) {
      const auto one = waits ? wait_operation(place.at, 1) : write_operation(place.at + kFlagStride, 3);
      std::vector<CUstreamBatchMemOpParams> operations(batch, one);
      Samples host, device;
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        GPU_CHECK(cudaEventRecord(begin.get(), stream.get()));
        const auto from = Clock::now();
        for (int done = 0; done < kOperations; done += batch) {
          if (batch > 1) {
            enqueue_batch(stream, operations);
          } else if (waits) {
            enqueue_wait(stream, place.at, 1);
          } else {
            enqueue_write(stream, place.at + kFlagStride, 3);
          }
        }
        host.add(seconds_since(from) / kOperations * 1e6);
        GPU_CHECK(cudaEventRecord(end.get(), stream.get()));
        drain(stream, rank.deadline(), "operations that need not wait");
        device.add(seconds_between(begin, end) / kOperations * 1e6);
      }
      const std::string which = std::string(waits ? "wait" : "write") + " on " + place.name +
                                (batch == 1 ? ", one by one" : ", in batches of " + std::to_string(batch));
      rank.report(host.row("enqueuing a " + which, "us"));
      rank.report(device.row("doing a " + which, "us", "enqueuing included where that is slower"));
    }
  }
}

// From the host's write of one flag to its reading of another, which the stream writes when it has seen the first.
void measure_latency(Rank& rank, const Flags& flags) {
  const Stream stream = make_stream();
  const Deadline deadline = Deadline::in(kPatience);
  const Watchdog watchdog(flags, deadline);
  Samples both_ways;
  for (uint32_t round = 1; round <= kRounds; round += kEnqueuedRounds) {
    for (uint32_t each = round; each < round + kEnqueuedRounds; ++each) {
      enqueue_wait(stream, flags.device(0), each);
      enqueue_write(stream, flags.device(1), each);
    }
    for (uint32_t each = round; each < round + kEnqueuedRounds; ++each) {
      const auto begin = Clock::now();
      flags.host(0).store(each, std::memory_order_release);
      flags.wait(1, each, deadline, "the stream's answer");
      both_ways.add(seconds_since(begin) * 1e6);
    }
    drain(stream, deadline, "waits and writes");
  }
  Samples enqueued;
  for (uint32_t round = kRounds + 1; round <= 2 * kRounds; ++round) {
    const auto begin = Clock::now();
    enqueue_write(stream, flags.device(1), round);
    flags.wait(1, round, deadline, "a write on an idle stream");
    enqueued.add(seconds_since(begin) * 1e6);
  }
  drain(stream, deadline, "writes");
  watchdog.require_quiet("measuring latency");
  rank.report(both_ways.row("host flag to stream and back to host", "us", "operations enqueued before"));
  rank.report(enqueued.row("enqueued write to host, idle stream", "us"));
}

// A stream that nobody's flag reaches: how soon the host ends its wait.
void release_a_wait(Rank& rank, const Flags& flags) {
  Samples seconds;
  for (int repeat = 0; repeat < 20; ++repeat) {
    flags.set_all(0);
    const Stream stream = make_stream();
    enqueue_wait(stream, flags.device(0), 1);
    enqueue_write(stream, flags.device(0), 0);
    enqueue_wait(stream, flags.device(0), 1);
    if (is_done_by(stream, Deadline::in(0.01))) return rank.report(works("a wait for a flag that is not set", false));
    const auto begin = Clock::now();
    const Watchdog watchdog(flags, Deadline::in(0));
    drain(stream, Deadline::in(kPatience), "a wait that the host has released");
    seconds.add(seconds_since(begin) * 1e6);
  }
  rank.report(seconds.row("releasing a stream that waits, resets and waits", "us", "a thread that writes every 100 us"));
}

// How many streams may wait before a further one, which need not wait, is held up behind them.
void hold_up_others(Rank& rank) {
  constexpr size_t kMostStreams = 64;
  const Flags flags(rank.shared());
  const Watchdog watchdog(flags, Deadline::in(kPatience));
  const Stream other = make_stream();
  // All before the first waits: to make one may wait for those that do.
  std::vector<Stream> streams;
  for (size_t i = 0; i < kMostStreams; ++i) streams.push_back(make_stream());
  size_t waiting = 0;
  bool held_up = false;
  while (!held_up && waiting < kMostStreams) {
    enqueue_wait(streams[waiting++], flags.device(0), 1);
    enqueue_write(other, flags.device(1), static_cast<uint32_t>(waiting));
    held_up = !is_done_by(other, Deadline::in(0.05));
    if (held_up) flags.set_all(kReleased);
    drain(other, Deadline::in(2 * kPatience), "a stream that need not wait");
  }
  watchdog.require_quiet("streams beside those that wait");
  flags.set_all(kReleased);
  for (const Stream& stream : streams) drain(stream, Deadline::in(kPatience), "a stream that waits");
  const char* const setting = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const std::string note = std::string("CUDA_DEVICE_MAX_CONNECTIONS is ") + (setting == nullptr ? "not set" : setting);
  const auto count = static_cast<double>(waiting);
  rank.report(
      measured(held_up ? "streams that wait when another one is held up by them" : "streams that wait and hold up no other",
               count, "", note));
}

void on_host_memory(Rank& rank) {
  const Flags flags(rank.shared());
  const Place place{"registered host memory", flags.device(0)};
  try_operations(rank, place);
  flags.set_all(0);
  measure_cost(rank, place);
  flags.set_all(0);
  measure_latency(rank, flags);
  release_a_wait(rank, flags);
}

void on_pinned_memory(Rank& rank) {
  void* pinned = nullptr;
  GPU_CHECK(cudaHostAlloc(&pinned, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
  const Owned<void*, cudaFreeHost> owner(pinned);
  void* mapped = nullptr;
  GPU_CHECK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  try_operations(rank, {"cudaHostAlloc memory", address_of(mapped)});
}

void on_device_memory(Rank& rank) {
  const DeviceMemory memory(2 * kFlagStride);
  const Place place{"own device memory", address_of(memory.get())};
  try_operations(rank, place);
  measure_cost(rank, place);
}

// Rank 1 works on flags in the memory that rank 0 lends, which stays until that is done.
template <class Memory, class Borrow>
void on_lent_memory(Rank& rank, const char* name, const Memory& own, const Borrow& borrow) {
  if (rank.index() == 0) {
    lend(rank, 1, own);
  } else {
    const auto borrowed = borrow(rank, 0);
    const Place place{name, address_of(borrowed.get())};
    try_operations(rank, place);
    measure_cost(rank, place);
  }
  rank.meet("the peer is done with the memory");
}

void on_ipc_memory(Rank& rank) { on_lent_memory(rank, "a peer's cudaIpc memory", DeviceMemory(kLentBytes), borrow_by_ipc); }

void on_descriptor_memory(Rank& rank) {
  on_lent_memory(rank, "a peer's cuMem memory", PhysicalMemory::make(kLentBytes), borrow_by_descriptor);
}

}  // namespace

int main(int argc, char** argv) {
  return run_probe(2,
                   {{"what the device says", 1, 20, report_attributes},
                    {"registered host memory", 1, 30, on_host_memory},
                    {"pinned host memory", 1, 20, on_pinned_memory},
                    {"device memory", 1, 20, on_device_memory},
                    {"cudaIpc memory of a peer", 2, 30, on_ipc_memory},
                    {"cuMem memory of a peer", 2, 30, on_descriptor_memory},
                    {"streams beside those that wait", 1, 20, hold_up_others}},
                   argc, argv);
}
