// Memory that is shared, in pieces, or not for the GPU at all.
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "first_minute/bare_driver.h"
#include "first_minute/cases.h"

namespace fccl::gpu::bare {

namespace {

using namespace std::chrono_literals;
constexpr size_t kShared = size_t{8} << 20;

struct Place {
  unsigned type = 99;
  unsigned managed = 0;
  int ordinal = -9;
  CUresult said{};
};

Place place_of(CUdeviceptr at) {
  Place place;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* answers[] = {&place.type, &place.managed, &place.ordinal};
  place.said = BARE(cuPointerGetAttributes)(3, which, answers, at);
  return place;
}

std::string described(const Place& place) {
  return bare::text_of(place.said) +
         text("; type %u (2: device, 0: unknown), managed %u, ordinal %d", place.type, place.managed, place.ordinal);
}

// Two pieces side by side; gives where they begin.
CUdeviceptr two_pieces(size_t& grain) {
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  MUST(BARE(cuMemGetAllocationGranularity)(&grain, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr at = 0;
  MUST(BARE(cuMemAddressReserve)(&at, 2 * grain, 0, 0, 0));
  for (size_t i = 0; i < 2; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(BARE(cuMemCreate)(&handle, grain, &property, 0));
    MUST(BARE(cuMemMap)(at + i * grain, grain, 0, handle, 0));
  }
  CUmemAccessDesc access{};
  access.location = property.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MUST(BARE(cuMemSetAccess)(at, 2 * grain, &access, 1));
  return at;
}

}  // namespace

void shared_mappings(Rank& rank) {
  open();
  const int file = memfd_create("first-minute", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, kShared) != 0) throw std::runtime_error("no memfd");
  std::byte* const mine = pages(kShared, PROT_READ | PROT_WRITE, file);
  std::byte* const peers = pages(kShared, PROT_READ, file);
  constexpr unsigned kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  const auto begin = Clock::now();
  const CUresult writable = BARE(cuMemHostRegister)(mine, kShared, kFlags);
  const double ms = ms_since(begin);
  answer(rank, "registering 8 MiB of a memfd", bare::text_of(writable) + text(" in %.2f ms", ms));
  const CUresult readable = BARE(cuMemHostRegister)(peers, kShared, kFlags | CU_MEMHOSTREGISTER_READ_ONLY);
  answer(rank, "registering the same pages by another mapping, read-only", bare::text_of(readable));
  if (writable != CUDA_SUCCESS) return;
  CUdeviceptr at = 0;
  MUST(BARE(cuMemHostGetDevicePointer)(&at, mine, 0));
  auto& word = *reinterpret_cast<std::atomic<uint64_t>*>(mine);
  auto& answered = *reinterpret_cast<std::atomic<uint64_t>*>(mine + 64);
  const CUstream stream = make_stream();
  const CUresult waited = enqueue(stream, {{true, at, 1}, {false, at + 64, 7}});
  std::this_thread::sleep_for(5ms);
  const bool held = answered.load() == 0;
  word.store(1);
  const bool went_on = happens(1000, [&] { return answered.load() == 7; });
  answer(rank, "a 64-bit wait and write there",
         bare::text_of(waited) + (held ? "; held" : "; NOT held") + (went_on ? ", answered" : ", NOT answered"));
}

void pieces(Rank& rank) {
  open();
  size_t grain = 0;
  const CUdeviceptr at = two_pieces(grain);
  answer(rank, "the place of memory in pieces", described(place_of(at + grain - 64)));
  const Pinned bytes(kPage * 64);
  const CUstream stream = make_stream();
  answer(rank, "cuMemcpyAsync over the border of two pieces",
         bare::text_of(copy(at + grain - kPage, bytes.device(), 2 * kPage, stream)));
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows.srcDevice = bytes.device();
  rows.srcPitch = 1000;
  rows.dstDevice = at + grain - kPage;
  rows.dstPitch = 1400;
  rows.WidthInBytes = 999;
  rows.Height = 7;
  answer(rank, "cuMemcpy2DAsync over it, odd pitches", bare::text_of(BARE(cuMemcpy2DAsync)(&rows, stream)));
  answer(rank, "the stream behind them", drains(stream, 2000) ? bare::text_of(BARE(cuStreamQuery)(stream)) : "NOT done");
  static int pageable = 0;
  answer(rank, "the place of pageable memory", described(place_of(reinterpret_cast<CUdeviceptr>(&pageable))));
}

void pageable_word(Rank& rank) {
  open();
  alignas(64) static uint64_t pageable = 0;
  const CUstream stream = make_stream();
  const CUresult said = enqueue(stream, {{false, reinterpret_cast<CUdeviceptr>(&pageable), 7}});
  drains(stream, 1000);
  answer(rank, "a word in pageable memory",
         bare::text_of(said) + "; then the stream: " + bare::text_of(BARE(cuStreamQuery)(stream)) +
             text("; the word is %llu", static_cast<unsigned long long>(pageable)));
}

void beyond(Rank& rank) {
  open();
  const CUdeviceptr large = device_memory(size_t{4} << 20), small = device_memory(size_t{2} << 20);
  const CUstream stream = make_stream();
  answer(rank, "a copy of 4 MiB into memory of 2 MiB", bare::text_of(copy(small, large, size_t{4} << 20, stream)));
  drains(stream, 1000);
  answer(rank, "the stream behind it", bare::text_of(BARE(cuStreamQuery)(stream)));
}

void no_context(Rank& rank) {
  open();
  const CUstream stream = make_stream();
  const CUdeviceptr memory = device_memory(kPage);
  const Pinned flags(kPage);
  CUevent event = nullptr;
  MUST(BARE(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  std::vector<std::pair<const char*, CUresult>> said;
  std::thread([&] {
    CUcontext context = nullptr;
    said.emplace_back("cuMemcpyAsync without a context", copy(memory, memory + 64, 64, stream));
    said.emplace_back("cuStreamQuery without a context", BARE(cuStreamQuery)(stream));
    said.emplace_back("cuStreamBatchMemOp without a context", enqueue(stream, {{false, flags.word_at(0), 1}}));
    said.emplace_back("cuEventRecord without a context", BARE(cuEventRecord)(event, stream));
    said.emplace_back("cuStreamGetCtx(NULL) without a context", BARE(cuStreamGetCtx)(nullptr, &context));
  }).join();
  for (const auto& [what, result] : said) answer(rank, what, bare::text_of(result));
}

}  // namespace fccl::gpu::bare
