// The fake driver: memory in pieces, as expandable segments have it: memory without an address, addresses without memory, and
// what is mapped where. Memory may be lent to another process, and outlives the one that made it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/fake_driver/state.h"
#include "os/descriptor.h"

namespace fccl::core::simulated {

namespace {

constexpr size_t kGranularity = size_t{2} << 20;

struct Memory {
  Descriptor file;
  size_t bytes = 0;
  bool lends = false;
};

struct Mapping {
  std::byte* begin;
  size_t bytes;
};

// Addresses, with the other ones by which the threads of a GPU find what is mapped there.
struct Reservation {
  std::byte* begin;
  size_t bytes;
  std::byte* real;
  std::vector<Mapping> mappings;

  bool holds(const std::byte* from, size_t length) const { return from >= begin && from + length <= begin + bytes; }
  std::byte* real_of(const std::byte* address) const { return real + (address - begin); }
};

std::mutex mutex_of_pieces;
std::map<CUmemGenericAllocationHandle, std::shared_ptr<Memory>> memories;
CUmemGenericAllocationHandle handles_made = 0;
std::vector<Reservation> reservations;

bool is_whole(size_t bytes) { return bytes > 0 && bytes % kGranularity == 0; }

std::byte* reserve(size_t bytes) {
  void* const made = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

// Like reserve, on a multiple of the granularity.
std::byte* reserve_aligned(size_t bytes) {
  std::byte* const made = reserve(bytes + kGranularity);
  if (made == nullptr) return nullptr;
  const size_t before = (kGranularity - reinterpret_cast<uintptr_t>(made) % kGranularity) % kGranularity;
  if (before > 0) ::munmap(made, before);
  if (before < kGranularity) ::munmap(made + before + bytes, kGranularity - before);
  return made + before;
}

// These are called with the mutex held.
CUmemGenericAllocationHandle handle_of(std::shared_ptr<Memory> memory) {
  memories.emplace(++handles_made, std::move(memory));
  return handles_made;
}

std::vector<Reservation>::iterator reservation_of(const std::byte* from, size_t bytes) {
  return std::ranges::find_if(reservations, [&](const Reservation& each) { return each.holds(from, bytes); });
}

// The mappings of a range; none unless they fill it.
std::vector<Mapping> mappings_in(const Reservation& reserved, const std::byte* from, size_t bytes) {
  std::vector<Mapping> found;
  size_t filled = 0;
  for (const Mapping& mapping : reserved.mappings) {
    if (mapping.begin < from || mapping.begin + mapping.bytes > from + bytes) continue;
    found.push_back(mapping);
    filled += mapping.bytes;
  }
  if (filled != bytes) found.clear();
  return found;
}

bool understand(const CUmemAllocationProp& wanted, CUresult& refused) {
  refused = CUDA_ERROR_INVALID_DEVICE;
  if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE || gpu_at(wanted.location.id) == nullptr) return false;
  refused = CUDA_ERROR_NOT_SUPPORTED;
  const bool lends = wanted.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return wanted.type == CU_MEM_ALLOCATION_TYPE_PINNED && (lends || wanted.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE);
}

// The GPU reaches these from now on, by a region for each, beside the first one that was let; or none does any more.
CUresult let(Gpu* gpu, Reservation& reserved, const std::vector<Mapping>& mappings) {
  for (const Mapping& mapping : mappings) {
    std::byte* const used = reserved.real_of(mapping.begin);
    if (Region known; gpu != nullptr && find_region(mapping.begin, known) && known.gpu != gpu) {
      let_use(mapping.begin, gpu->options().ordinal, true);
      continue;
    }
    remove_region(mapping.begin);
    if (::mprotect(used, mapping.bytes, gpu == nullptr ? PROT_NONE : PROT_READ | PROT_WRITE) != 0) return CUDA_ERROR_UNKNOWN;
    if (gpu != nullptr) add_region({mapping.begin, mapping.bytes, used, Region::Kind::piece, gpu, nullptr});
  }
  return CUDA_SUCCESS;
}

}  // namespace

}  // namespace fccl::core::simulated

using namespace fccl::core::simulated;  // NOLINT(google-build-using-namespace): the driver's functions are the rest of the file
using fccl::core::Descriptor;

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* wanted,
                                       CUmemAllocationGranularity_flags /*which*/) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  CUresult refused{};
  if (!understand(*wanted, refused)) return refused;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* wanted,
                     unsigned long long flags) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  CUresult refused{};
  if (!understand(*wanted, refused)) return refused;
  if (!is_whole(bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<Memory>();
  made->file = Descriptor(::memfd_create("fccl-simulated-gpu", MFD_CLOEXEC));
  if (!made->file || ::ftruncate(made->file.get(), static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  made->bytes = bytes;
  made->lends = wanted->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const std::scoped_lock lock(mutex_of_pieces);
  *handle = handle_of(std::move(made));
  return CUDA_SUCCESS;
}

// What is mapped stays until it is unmapped.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::scoped_lock lock(mutex_of_pieces);
  return memories.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr /*wanted*/,
                             unsigned long long flags) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!is_whole(bytes) || flags != 0 || (alignment != 0 && kGranularity % alignment != 0)) return CUDA_ERROR_INVALID_VALUE;
  std::byte* const seen = reserve_aligned(bytes);
  std::byte* const used = reserve_aligned(bytes);
  if (seen == nullptr || used == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::scoped_lock lock(mutex_of_pieces);
  reservations.push_back({seen, bytes, used, {}});
  *address = reinterpret_cast<CUdeviceptr>(seen);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  const std::scoped_lock lock(mutex_of_pieces);
  const auto reserved = reservation_of(bytes_at(address), bytes);
  if (reserved == reservations.end() || reserved->bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!reserved->mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  ::munmap(reserved->begin, bytes);
  ::munmap(reserved->real, bytes);
  reservations.erase(reserved);
  return CUDA_SUCCESS;
}

// Nobody reaches it before cuMemSetAccess.
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  const std::scoped_lock lock(mutex_of_pieces);
  std::byte* const begin = bytes_at(address);
  const auto reserved = reservation_of(begin, bytes);
  const auto memory = memories.find(handle);
  if (reserved == reservations.end() || memory == memories.end() || flags != 0 || offset != 0) return CUDA_ERROR_INVALID_VALUE;
  if (address % kGranularity != 0 || !is_whole(bytes) || bytes > memory->second->bytes) return CUDA_ERROR_INVALID_VALUE;
  for (const Mapping& other : reserved->mappings) {
    if (begin < other.begin + other.bytes && other.begin < begin + bytes) return CUDA_ERROR_INVALID_VALUE;
  }
  void* const mapped =
      ::mmap(reserved->real_of(begin), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->second->file.get(), 0);
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  reserved->mappings.push_back({begin, bytes});
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
  const std::scoped_lock lock(mutex_of_pieces);
  const auto reserved = reservation_of(bytes_at(address), bytes);
  if (reserved == reservations.end() || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Mapping> mappings = mappings_in(*reserved, bytes_at(address), bytes);
  if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (count != 1 || access->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  Gpu* const gpu = gpu_at(access->location.id);
  if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ) return CUDA_ERROR_NOT_SUPPORTED;
  return let(access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? gpu : nullptr, *reserved, mappings);
}

// Whole mappings alone, and behind all that the GPU has been given.
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const CUresult idle = on_current([](Gpu& gpu) { return result_of(gpu.synchronize_all()); });
  if (idle != CUDA_SUCCESS) return idle;
  const std::scoped_lock lock(mutex_of_pieces);
  std::byte* const begin = bytes_at(address);
  const auto reserved = reservation_of(begin, bytes);
  if (reserved == reservations.end()) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Mapping> mappings = mappings_in(*reserved, begin, bytes);
  if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = let(nullptr, *reserved, mappings); result != CUDA_SUCCESS) return result;
  constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(reserved->real_of(begin), bytes, PROT_NONE, kNothing, -1, 0) == MAP_FAILED) return CUDA_ERROR_UNKNOWN;
  std::erase_if(reserved->mappings, [&](const Mapping& each) { return each.begin >= begin && each.begin < begin + bytes; });
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* lent, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
  const std::scoped_lock lock(mutex_of_pieces);
  const auto memory = memories.find(handle);
  if (memory == memories.end() || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (!memory->second->lends) return CUDA_ERROR_INVALID_VALUE;
  const int copy = ::fcntl(memory->second->file.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(lent) = copy;
  return CUDA_SUCCESS;
}

// The descriptor stays the caller's.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* lent, CUmemAllocationHandleType type) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  auto borrowed = std::make_shared<Memory>();
  borrowed->file = Descriptor(::fcntl(static_cast<int>(reinterpret_cast<uintptr_t>(lent)), F_DUPFD_CLOEXEC, 0));
  struct stat about{};
  if (!borrowed->file || ::fstat(borrowed->file.get(), &about) != 0) return CUDA_ERROR_INVALID_VALUE;
  borrowed->bytes = static_cast<size_t>(about.st_size);
  borrowed->lends = true;
  if (!is_whole(borrowed->bytes)) return CUDA_ERROR_INVALID_VALUE;
  const std::scoped_lock lock(mutex_of_pieces);
  *handle = handle_of(std::move(borrowed));
  return CUDA_SUCCESS;
}

}  // extern "C"
