// Question 1: which device memory can several processes on one GPU share, and at what rate do they read each other's?
#include <memory>
#include <string>
#include <vector>

#include "device_probe.h"
#include "kernels.h"
#include "lending.h"
#include "verify.h"

namespace {

using namespace fccl::gpu;

constexpr size_t kBytes = 64 << 20;
constexpr size_t kMarkBytes = 4096;  // bytes that each peer writes into each other's memory, at the place of its rank
constexpr int kTimedCopies = 20;

uint32_t seed_of(int rank) { return 100 + static_cast<uint32_t>(rank); }
uint32_t mark_of(int writer, int owner) { return 1000 + static_cast<uint32_t>(writer * kMostRanks + owner); }

// The two ways of sharing: what each process makes, and how it maps what another one has made.
struct ByIpc {
  DeviceMemory memory{kBytes};
  static IpcMapping borrow(Rank& rank, int from) { return borrow_by_ipc(rank, from); }
};

struct ByDescriptor {
  PhysicalMemory memory = PhysicalMemory::make(kBytes);
  static PhysicalMemory borrow(Rank& rank, int from) { return borrow_by_descriptor(rank, from); }
};

double copy_rate(const Stream& stream, void* to, const void* from) {
  const Event begin = make_event(), end = make_event();
  GPU_CHECK(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream.get()));
  GPU_CHECK(cudaEventRecord(begin.get(), stream.get()));
  for (int copy = 0; copy < kTimedCopies; ++copy) {
    GPU_CHECK(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream.get()));
  }
  GPU_CHECK(cudaEventRecord(end.get(), stream.get()));
  GPU_CHECK(cudaStreamSynchronize(stream.get()));
  return kBytes * static_cast<double>(kTimedCopies) / seconds_between(begin, end) * 1e-9;
}

// All ranks read all others' memory and write a mark into it, which its owner finds.
template <class Way>
void share(Rank& rank) {
  const Stream stream = make_stream();
  const Way way;
  launch_fill(stream.get(), way.memory.get(), kBytes, seed_of(rank.index()));
  drain(stream, rank.deadline(), "filling the own memory");
  for (int peer = 0; peer < rank.count(); ++peer) {
    if (peer != rank.index()) lend(rank, peer, way.memory);
  }
  rank.meet("all have filled and lent their memory");
  using Mapping = decltype(Way::borrow(rank, 0));
  std::vector<std::unique_ptr<Mapping>> borrowed(rank.count());
  double seconds = 0;
  for (int peer = 0; peer < rank.count(); ++peer) {
    if (peer == rank.index()) continue;
    const auto begin = Clock::now();
    borrowed[peer] = std::make_unique<Mapping>(Way::borrow(rank, peer));
    seconds += seconds_since(begin);
  }
  unsigned long long wrong = 0;
  for (int peer = 0; peer < rank.count(); ++peer) {
    if (peer != rank.index()) wrong += wrong_words(stream, borrowed[peer]->get(), kBytes, seed_of(peer));
  }
  rank.meet("all have read all memory");
  for (int peer = 0; peer < rank.count(); ++peer) {
    if (peer == rank.index()) continue;
    auto* const mark = static_cast<std::byte*>(borrowed[peer]->get()) + rank.index() * kMarkBytes;
    launch_fill(stream.get(), mark, kMarkBytes, mark_of(rank.index(), peer));
  }
  drain(stream, rank.deadline(), "marking the others' memory");
  rank.meet("all have marked all memory");
  for (int peer = 0; peer < rank.count(); ++peer) {
    if (peer == rank.index()) continue;
    const auto* const mark = static_cast<const std::byte*>(way.memory.get()) + peer * kMarkBytes;
    wrong += wrong_words(stream, mark, kMarkBytes, mark_of(peer, rank.index()));
  }
  if (wrong != 0 || rank.index() == 0) {
    rank.report(
        works("every process reads and writes every other's memory", wrong == 0, std::to_string(wrong) + " wrong words"));
  }
  if (rank.index() == 0) {
    const DeviceMemory to(kBytes);
    const void* const from = borrowed[1]->get();
    rank.report(measured("mapping one peer's memory", seconds / (rank.count() - 1) * 1e6, "us", "64 MiB, mean"));
    rank.report(measured("copying own memory", copy_rate(stream, to.get(), way.memory.get()), "GB/s", "64 MiB, bytes copied"));
    rank.report(measured("copying a peer's memory", copy_rate(stream, to.get(), from), "GB/s", "64 MiB, the peers idle"));
  }
  borrowed.clear();
  rank.meet("nobody gives memory back that another one maps");
}

// Reports if cudaIpc takes memory that cudaMalloc has not made.
void ipc_of_physical_memory(Rank& rank) {
  const PhysicalMemory memory = PhysicalMemory::make(kBytes);
  cudaIpcMemHandle_t handle{};
  const cudaError_t result = cudaIpcGetMemHandle(&handle, memory.get());
  cudaGetLastError();
  rank.report(result == cudaSuccess ? works("cudaIpcGetMemHandle of cuMem memory", true)
                                    : unsupported("cudaIpcGetMemHandle of cuMem memory", text_of(result)));
}

// Reports if memory stays when its maker is gone: the bytes that a rank still reads of a peer that has died.
void outlive_the_owner(Rank& rank) {
  if (rank.index() == 1) {
    const Stream stream = make_stream();
    const PhysicalMemory memory = PhysicalMemory::make(kBytes);
    launch_fill(stream.get(), memory.get(), kBytes, seed_of(1));
    drain(stream, rank.deadline(), "filling memory to leave behind");
    lend(rank, 0, memory);
    return;
  }
  const Stream stream = make_stream();
  const PhysicalMemory borrowed = borrow_by_descriptor(rank, 1);
  rank.wait_for_end_of(1);
  const auto wrong = wrong_words(stream, borrowed.get(), kBytes, seed_of(1));
  rank.report(works("memory by descriptor outlives its maker", wrong == 0, std::to_string(wrong) + " wrong words"));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Case> cases;
  for (const int ranks : {2, 4, 8}) {
    cases.push_back({"cudaIpc, " + std::to_string(ranks) + " processes", ranks, 30, share<ByIpc>});
    cases.push_back({"cuMem descriptors, " + std::to_string(ranks) + " processes", ranks, 30, share<ByDescriptor>});
  }
  cases.push_back({"cudaIpc of cuMem memory", 1, 20, ipc_of_physical_memory});
  cases.push_back({"an owner that has ended", 2, 20, outlive_the_owner});
  return run_probe(1, cases, argc, argv);
}
