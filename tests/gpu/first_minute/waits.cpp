// Calls that wait in the driver, and calls that a waiting stream holds up.
#include <sys/mman.h>

#include <cstdlib>

#include "first_minute/bare_driver.h"
#include "first_minute/cases.h"

namespace fccl::gpu::bare {

namespace {

constexpr size_t kBig = size_t{8} << 20;
constexpr size_t kMostWaiting = 40;

void held_up(Rank& rank, const char* what, int priority, bool copies) {
  Pinned flags(kPage);
  const Pinned bytes(kPage * 4);
  const CUdeviceptr memory = device_memory(kPage * 4);
  const CUstream free_stream = make_stream();
  // All before the first waits: to make one may wait for those that do.
  std::vector<CUstream> waiting;
  for (size_t k = 0; k < kMostWaiting; ++k) waiting.push_back(make_stream(priority));
  size_t held_at = 0;
  for (size_t k = 1; k <= kMostWaiting && held_at == 0; ++k) {
    const CUstream stream = waiting[k - 1];
    MUST(enqueue(stream, {{true, flags.word_at(0), 1}}));
    if (copies) {
      MUST(copy(memory, bytes.device(), kPage, stream));
      MUST(copy(bytes.device(kPage), memory, kPage, stream));
    }
    MUST(copy(memory + kPage, bytes.device(2 * kPage), kPage, free_stream));
    MUST(copy(bytes.device(3 * kPage), memory + kPage, kPage, free_stream));
    MUST(enqueue(free_stream, {{false, flags.word_at(1), k}}));
    if (!drains(free_stream, 100)) held_at = k;
  }
  flags.word(0).store(1);
  for (const CUstream each : waiting) drains(each, 2000);
  if (held_at > 0)
    answer(rank, what, text("held up by %zu waiting streams", held_at));
  else
    answer(rank, what, text("not held up by %zu", kMostWaiting));
}

}  // namespace

void host_to_host(Rank& rank) {
  open();
  const Pinned mine(kPage * 4), users(kPage * 4);
  Pinned flags(kPage);
  const CUstream stream = make_stream(), other = make_stream();
  const auto release = [&] { flags.word(0).store(1); };
  MUST(enqueue(stream, {{true, flags.word_at(0), 1}}));
  answer(rank, "cuMemcpyAsync from pinned to pinned memory, behind a wait",
         returns([&] { return copy(mine.device(), users.device(), kPage, stream); }, release));
  drains(stream, 2000);
  flags.word(0).store(0);
  CUdeviceptr managed = 0;
  if (BARE(cuMemAllocManaged)(&managed, kPage, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS) return;
  MUST(enqueue(other, {{true, flags.word_at(0), 1}}));
  answer(rank, "cuMemcpyAsync from managed to pinned memory, behind a wait",
         returns([&] { return copy(mine.device(), managed, kPage, other); }, release));
  drains(other, 2000);
}

void set_up(Rank& rank) {
  open();
  Pinned flags(kPage);
  const CUstream stream = make_stream();
  std::byte* const page = pages(kBig, PROT_READ | PROT_WRITE);
  CUstream made = nullptr;
  CUdeviceptr memory = 0;
  const std::vector<std::pair<const char*, std::function<CUresult()>>> calls = {
      {"cuMemAlloc", [&] { return BARE(cuMemAlloc)(&memory, kBig); }},
      {"cuMemFree", [&] { return BARE(cuMemFree)(memory); }},
      {"cuMemHostRegister", [&] { return BARE(cuMemHostRegister)(page, kBig, CU_MEMHOSTREGISTER_DEVICEMAP); }},
      {"cuMemHostUnregister", [&] { return BARE(cuMemHostUnregister)(page); }},
      {"cuStreamCreate", [&] { return BARE(cuStreamCreate)(&made, CU_STREAM_NON_BLOCKING); }},
      {"cuStreamDestroy", [&] { return BARE(cuStreamDestroy)(made); }}};
  uint64_t number = 0;
  for (const auto& [name, call] : calls) {
    MUST(enqueue(stream, {{true, flags.word_at(0), ++number}}));
    answer(rank, name, returns(call, [&, number] { flags.word(0).store(number); }));
    drains(stream, 2000);
  }
}

void connections(Rank& rank) {
  open();
  int least = 0, greatest = 0;
  held_up(rank, "a stream beside waits", 0, false);
  held_up(rank, "a stream beside waits with copies behind them", 0, true);
  MUST(BARE(cuCtxGetStreamPriorityRange)(&least, &greatest));
  held_up(rank, "the same, waits on streams of the greatest priority", greatest, true);
}

void connections_32(Rank& rank) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  connections(rank);
}

}  // namespace fccl::gpu::bare
