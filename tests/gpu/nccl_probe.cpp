// Question 8: which NCCL runs several ranks on one GPU, how is it told to, and how fast are its AllGather and ReduceScatter
// there?
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device.h"
#include "kernels.h"
#include "probe.h"
#include "verify.h"

namespace {

using namespace fccl::gpu;

// What of NCCL's interface is needed, as its ABI has had it since 2.0: the library is found at run time.
struct UniqueId {
  std::array<char, 128> bytes;
};
using Communicator = void*;
constexpr int kSuccess = 0;
constexpr int kFloat32 = 7;
constexpr int kSum = 0;

struct Nccl {
  int (*get_version)(int*);
  int (*get_unique_id)(UniqueId*);
  int (*init_rank)(Communicator*, int, UniqueId, int);
  int (*abort)(Communicator);
  const char* (*error_string)(int);
  const char* (*last_error)(Communicator);
  int (*all_gather)(const void*, void*, size_t, int, Communicator, cudaStream_t);
  int (*reduce_scatter)(const void*, void*, size_t, int, int, Communicator, cudaStream_t);
};

constexpr size_t kMostBytes = size_t{64} << 20;  // of the whole buffer
constexpr int kWarmCalls = 3, kTimedCalls = 10;

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw Unsupported(std::string(name) + ", which this NCCL does not have");
}

// FCCL_GPU_NCCL names the library; ./dev gpu sets it to the one that torch brings.
Nccl load() {
  // Its warnings say why it refuses.
  setenv("NCCL_DEBUG", "WARN", 0);
  const char* const named = std::getenv("FCCL_GPU_NCCL");
  const std::string path = named != nullptr ? named : "libnccl.so.2";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Unsupported("NCCL: " + std::string(dlerror()));
  Nccl nccl{};
  find(library, "ncclGetVersion", nccl.get_version);
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRank", nccl.init_rank);
  find(library, "ncclCommAbort", nccl.abort);
  find(library, "ncclGetErrorString", nccl.error_string);
  find(library, "ncclGetLastError", nccl.last_error);
  find(library, "ncclAllGather", nccl.all_gather);
  find(library, "ncclReduceScatter", nccl.reduce_scatter);
  return nccl;
}

void report_version(Rank& rank) {
  int version = 0;
  const Nccl nccl = load();
  nccl.get_version(&version);
  const char* const named = std::getenv("FCCL_GPU_NCCL");
  rank.report(measured("version of NCCL", version, "", named != nullptr ? named : "libnccl.so.2 of the system"));
}

std::string text_of_result(const Nccl& nccl, int result) {
  return std::string(nccl.error_string(result)) + " (" + nccl.last_error(nullptr) + ")";
}

void require(const Nccl& nccl, int result, const char* called) {
  if (result != kSuccess) throw std::runtime_error(std::string(called) + " gave " + text_of_result(nccl, result));
}

// Ranks get their communicator, or learn that this NCCL refuses several ranks on one GPU.
Communicator join(Rank& rank, const Nccl& nccl) {
  UniqueId id{};
  if (rank.index() == 0) {
    require(nccl, nccl.get_unique_id(&id), "ncclGetUniqueId");
    for (int peer = 1; peer < rank.count(); ++peer) rank.send(peer, {id.bytes.data(), id.bytes.size()});
  } else {
    std::memcpy(id.bytes.data(), rank.receive(0).bytes.data(), id.bytes.size());
  }
  Communicator communicator = nullptr;
  const int result = nccl.init_rank(&communicator, rank.count(), id, rank.index());
  if (result != kSuccess) throw Unsupported("several ranks on one GPU in this NCCL: " + text_of_result(nccl, result));
  return communicator;
}

// The seconds of one call, by the host's clock, since the ranks share the GPU.
template <class Call>
double seconds_per_call(Rank& rank, const Stream& stream, const Call& call) {
  for (int warm = 0; warm < kWarmCalls; ++warm) call();
  drain(stream, rank.deadline(), "NCCL's first calls");
  rank.meet("timed calls begin");
  const auto begin = Clock::now();
  for (int timed = 0; timed < kTimedCalls; ++timed) call();
  drain(stream, rank.deadline(), "NCCL's timed calls");
  rank.meet("timed calls end");
  return seconds_since(begin) / kTimedCalls;
}

void report_rate(Rank& rank, const char* collective, size_t bytes, double seconds) {
  if (rank.index() != 0) return;
  const double share = static_cast<double>(rank.count() - 1) / rank.count();
  const std::string what = std::string(collective) + ", " + std::to_string(bytes >> 10) + " KiB";
  rank.report(measured(what, seconds * 1e6, "us"));
  rank.report(
      measured(what, static_cast<double>(bytes) / seconds * share * 1e-9, "GB/s", "bus bandwidth as nccl-tests counts it"));
}

unsigned long long wrong_blocks(Rank& rank, const Stream& stream, const DeviceMemory& whole) {
  const size_t block = kMostBytes / rank.count();
  unsigned long long wrong = 0;
  for (int source = 0; source < rank.count(); ++source) {
    wrong += wrong_words(stream, whole.at(source * block), block, static_cast<uint32_t>(source));
  }
  return wrong;
}

// Every rank's input is 1 + its number everywhere, so that every sum is the same whole number.
size_t wrong_sums(Rank& rank, const DeviceMemory& part) {
  std::vector<float> sums(kMostBytes / rank.count() / sizeof(float));
  GPU_CHECK(cudaMemcpy(sums.data(), part.get(), sums.size() * sizeof(float), cudaMemcpyDeviceToHost));
  size_t wrong = 0;
  const float expected = static_cast<float>(rank.count() * (rank.count() + 1)) / 2;
  for (const float sum : sums) wrong += sum != expected;
  return wrong;
}

void run_collectives(Rank& rank) {
  const Nccl nccl = load();
  const Communicator communicator = join(rank, nccl);
  const Stream stream = make_stream();
  const DeviceMemory whole(kMostBytes), part(kMostBytes / rank.count());
  launch_fill(stream.get(), part.get(), part.size(), static_cast<uint32_t>(rank.index()));
  GPU_CHECK(cudaMemsetAsync(whole.get(), 0xff, whole.size(), stream.get()));
  for (size_t bytes = 64 << 10; bytes <= kMostBytes; bytes *= 4) {
    const size_t elements = bytes / rank.count() / sizeof(float);
    report_rate(rank, "AllGather", bytes, seconds_per_call(rank, stream, [&] {
                  require(nccl, nccl.all_gather(part.get(), whole.get(), elements, kFloat32, communicator, stream.get()),
                          "ncclAllGather");
                }));
  }
  const auto wrong = wrong_blocks(rank, stream, whole);
  if (wrong != 0 || rank.index() == 0)
    rank.report(works("AllGather's result", wrong == 0, std::to_string(wrong) + " wrong words"));
  const std::vector<float> input(kMostBytes / sizeof(float), 1.0F + static_cast<float>(rank.index()));
  GPU_CHECK(cudaMemcpy(whole.get(), input.data(), kMostBytes, cudaMemcpyHostToDevice));
  GPU_CHECK(cudaMemset(part.get(), 0xff, part.size()));
  GPU_CHECK(cudaDeviceSynchronize());
  for (size_t bytes = 64 << 10; bytes <= kMostBytes; bytes *= 4) {
    const size_t elements = bytes / rank.count() / sizeof(float);
    report_rate(rank, "ReduceScatter", bytes, seconds_per_call(rank, stream, [&] {
                  require(nccl,
                          nccl.reduce_scatter(whole.get(), part.get(), elements, kFloat32, kSum, communicator, stream.get()),
                          "ncclReduceScatter");
                }));
  }
  const size_t wrong_parts = wrong_sums(rank, part);
  if (wrong_parts != 0 || rank.index() == 0) {
    rank.report(works("ReduceScatter's result", wrong_parts == 0, std::to_string(wrong_parts) + " wrong sums"));
  }
  rank.meet("all have ended their calls");
  nccl.abort(communicator);
}

// NCCL 2.30 and later allow it where they are asked to; its own page warns of ranks that wait for each other's SMs, hence the
// few blocks.
void by_its_setting(Rank& rank) {
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  setenv("NCCL_MAX_CTAS", "4", 1);
  run_collectives(rank);
}

// Older ones refuse two ranks on one GPU of one host. Ranks that say they are on different hosts are let through, and meet over
// sockets: a peer that runs, at the rate of its network path.
void by_host_names(Rank& rank) {
  setenv("NCCL_HOSTID", ("fccl-gpu-" + std::to_string(rank.index())).c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("NCCL_MAX_CTAS", "4", 1);
  run_collectives(rank);
}

}  // namespace

int main(int argc, char** argv) {
  return run_probe(8,
                   {{"NCCL", 1, 20, report_version},
                    {"2 ranks by NCCL_MULTI_RANK_GPU_ENABLE", 2, 40, by_its_setting},
                    {"4 ranks by NCCL_MULTI_RANK_GPU_ENABLE", 4, 40, by_its_setting},
                    {"2 ranks by NCCL_HOSTID", 2, 40, by_host_names}},
                   argc, argv);
}
