// Question 4: at what rates does one GPU copy within its memory, by which engine, and what do batches and several streams
// change?
#include <string>
#include <vector>

#include "flags.h"
#include "kernels.h"
#include "probe.h"
#include "samples.h"
#include "verify.h"

namespace {

using namespace fccl::gpu;

constexpr uint32_t kSeed = 4;
constexpr int kRepeats = 10;
constexpr uint64_t kOccupationNs = 1'000'000'000;
constexpr size_t kStop = 0, kStarted = 1;  // and the flags behind it, one for each block

std::string size_text(size_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes >> 10) + " KiB";
}

// A source with the pattern and a destination that has never had it.
struct Buffers {
  explicit Buffers(size_t bytes) : from(bytes), to(bytes) {
    const Stream stream = make_stream();
    launch_fill(stream.get(), from.get(), bytes, kSeed);
    GPU_CHECK(cudaMemsetAsync(to.get(), 0xff, bytes, stream.get()));
    GPU_CHECK(cudaStreamSynchronize(stream.get()));
  }
  // The words of the first `bytes` that have not arrived.
  unsigned long long wrong(size_t bytes) const { return wrong_words(make_stream(), to.get(), bytes, kSeed); }
  DeviceMemory from, to;
};

void report_arrival(Rank& rank, const std::string& what, unsigned long long wrong) {
  if (wrong != 0) rank.report(works(what, false, std::to_string(wrong) + " words did not arrive"));
}

void copy(const Stream& stream, void* to, const void* from, size_t bytes) {
  GPU_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream.get()));
}

// Copies of one size, each at a place of its own among 2 GiB; those that together fit into the cache come from it.
void rate_by_size(Rank& rank) {
  constexpr size_t kRoom = size_t{2} << 30;
  constexpr size_t kMostCopies = 256;
  const Buffers buffers(kRoom);
  const Stream stream = make_stream();
  const Event begin = make_event(), end = make_event();
  for (size_t bytes = 4 << 10; bytes <= size_t{1} << 30; bytes *= 4) {
    const size_t copies = std::min(kMostCopies, kRoom / bytes);
    const size_t step = kRoom / copies;
    Samples rate, each;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      GPU_CHECK(cudaEventRecord(begin.get(), stream.get()));
      for (size_t at = 0; at < copies; ++at) copy(stream, buffers.to.at(at * step), buffers.from.at(at * step), bytes);
      GPU_CHECK(cudaEventRecord(end.get(), stream.get()));
      drain(stream, rank.deadline(), "copies");
      const double seconds = seconds_between(begin, end) / static_cast<double>(copies);
      rate.add(static_cast<double>(bytes) / seconds * 1e-9);
      each.add(seconds * 1e6);
    }
    rank.report(rate.row(std::to_string(copies) + " copies of " + size_text(bytes), "GB/s", "bytes copied"));
    rank.report(each.row("one copy of " + size_text(bytes), "us"));
  }
  report_arrival(rank, "copies of all sizes", buffers.wrong(kRoom));
}

using Copy = cudaError_t (*)(void* to, const void* from, size_t bytes, cudaStream_t stream);

cudaError_t copy_plainly(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t copy_batch(const std::vector<void*>& to, const std::vector<const void*>& from, size_t bytes, cudaStream_t stream) {
  std::vector<size_t> sizes(to.size(), bytes);
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  size_t first = 0;
  return cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), to.size(), &attributes, &first, 1, stream);
}

cudaError_t copy_overlapping(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  return copy_batch({to}, {from}, bytes, stream);
}

// Whether a copy ends while a kernel fills all SMs: then it goes by a copy engine.
void beside_a_full_gpu(Rank& rank, const char* how, Copy way, size_t bytes) {
  const Flags flags(rank.shared());
  flags.set_all(0);
  const Buffers buffers(bytes);
  const Stream computing = make_stream(), copying = make_stream();
  const Event begin = make_event(), end = make_event();
  GPU_CHECK(way(buffers.to.get(), buffers.from.get(), bytes, copying.get()));
  drain(copying, rank.deadline(), "a first copy, alone");
  GPU_CHECK(cudaMemset(buffers.to.get(), 0xff, bytes));
  GPU_CHECK(cudaDeviceSynchronize());
  const Occupation occupation{flags.kernel(kStarted), Flags::kStrideWords, flags.kernel(kStop), kOccupationNs};
  const int blocks = launch_occupation(computing.get(), occupation);
  for (int block = 0; block < blocks; ++block) flags.wait(kStarted + block, 1, rank.deadline(), "a block on each SM");
  GPU_CHECK(cudaEventRecord(begin.get(), copying.get()));
  GPU_CHECK(way(buffers.to.get(), buffers.from.get(), bytes, copying.get()));
  GPU_CHECK(cudaEventRecord(end.get(), copying.get()));
  const bool copied = is_done_by(copying, Deadline::in(0.5));
  const bool overlapped = copied && cudaStreamQuery(computing.get()) == cudaErrorNotReady;
  flags.host(kStop).store(1, std::memory_order_release);
  drain(computing, rank.deadline(), "the kernel on all SMs");
  drain(copying, rank.deadline(), "the copy beside it");
  const std::string what = std::string(how) + ", " + size_text(bytes) + ", beside a kernel on all SMs";
  if (overlapped) {
    rank.report(works(what + ": overlaps", true, "so a copy engine did it"));
    rank.report(measured(what, static_cast<double>(bytes) / seconds_between(begin, end) * 1e-9, "GB/s", "bytes copied"));
  } else {
    rank.report(unsupported(what + ": overlaps", "the copy waited for the kernel, so SMs did it"));
  }
  report_arrival(rank, what, buffers.wrong(bytes));
}

void engine(Rank& rank) {
  for (const size_t bytes : {size_t{64} << 10, size_t{16} << 20, size_t{256} << 20}) {
    beside_a_full_gpu(rank, "cudaMemcpyAsync", copy_plainly, bytes);
    beside_a_full_gpu(rank, "cudaMemcpyBatchAsync", copy_overlapping, bytes);
  }
}

// As many copies one by one and in one call: the host's time, and the stream's.
void batches(Rank& rank) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  const Buffers buffers(kMostBytes);
  const Stream stream = make_stream();
  const Event begin = make_event(), end = make_event();
  for (const size_t count : {size_t{8}, size_t{64}}) {
    for (const size_t bytes : {size_t{64} << 10, size_t{1} << 20}) {
      std::vector<void*> to;
      std::vector<const void*> from;
      for (size_t at = 0; at < count; ++at) {
        to.push_back(buffers.to.at(at * bytes));
        from.push_back(buffers.from.at(at * bytes));
      }
      for (const bool batched : {false, true}) {
        Samples host, device;
        for (int repeat = 0; repeat < kRepeats; ++repeat) {
          GPU_CHECK(cudaEventRecord(begin.get(), stream.get()));
          const auto from_time = Clock::now();
          if (batched) {
            GPU_CHECK(copy_batch(to, from, bytes, stream.get()));
          } else {
            for (size_t at = 0; at < count; ++at) copy(stream, to[at], from[at], bytes);
          }
          host.add(seconds_since(from_time) * 1e6);
          GPU_CHECK(cudaEventRecord(end.get(), stream.get()));
          drain(stream, rank.deadline(), "a batch of copies");
          device.add(seconds_between(begin, end) * 1e6);
        }
        const std::string what =
            std::to_string(count) + " copies of " + size_text(bytes) + (batched ? " in one call" : " one by one");
        rank.report(host.row("enqueuing " + what, "us"));
        rank.report(device.row(what, "us"));
      }
    }
  }
  report_arrival(rank, "batches of copies", buffers.wrong(kMostBytes));
}

void several_streams(Rank& rank) {
  constexpr size_t kBytes = size_t{64} << 20;
  constexpr int kMostStreams = 8, kCopies = 8;
  const Buffers buffers(kBytes * kMostStreams);
  for (const int count : {1, 2, 4, 8}) {
    std::vector<Stream> streams;
    for (int each = 0; each < count; ++each) streams.push_back(make_stream());
    Samples rate;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const auto begin = Clock::now();
      for (int turn = 0; turn < kCopies; ++turn) {
        for (int each = 0; each < count; ++each) {
          copy(streams[each], buffers.to.at(each * kBytes), buffers.from.at(each * kBytes), kBytes);
        }
      }
      for (const Stream& stream : streams) drain(stream, rank.deadline(), "one of several streams");
      rate.add(static_cast<double>(kBytes) * kCopies * count / seconds_since(begin) * 1e-9);
    }
    rank.report(rate.row("64 MiB copies on " + std::to_string(count) + " streams together", "GB/s", "bytes copied"));
  }
  report_arrival(rank, "copies on several streams", buffers.wrong(kBytes * kMostStreams));
}

}  // namespace

int main(int argc, char** argv) {
  return run_probe(4,
                   {{"rate by size", 1, 30, rate_by_size},
                    {"copy engine or SMs", 1, 30, engine},
                    {"batches", 1, 20, batches},
                    {"several streams", 1, 20, several_streams}},
                   argc, argv);
}
