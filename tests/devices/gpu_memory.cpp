// GpuMemory: maps memory for the host and for the GPU, and looks it up in the AddressSpace.
#include "devices/gpu_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/descriptor.h"

namespace fccl::core::simulated {

namespace {

using Why = Refusal::Why;
using Kind = Region::Kind;

const size_t kPage = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

std::byte* map(size_t bytes, int protection, int descriptor) {
  const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const made = ::mmap(nullptr, bytes, protection, flags, descriptor, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

bool is_memory(Kind kind) { return kind != Kind::queue && kind != Kind::mark; }

// Maps device memory twice: at the address that users see nobody may touch it, at the other the GPU uses it.
Region map_device_memory(size_t bytes) {
  const Descriptor memory(::memfd_create("fccl-simulated-gpu", MFD_CLOEXEC));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return {};
  std::byte* const seen = map(bytes, PROT_NONE, memory.get());
  std::byte* const used = map(bytes, PROT_READ | PROT_WRITE, memory.get());
  return {seen, bytes, used, Kind::device, nullptr, nullptr};
}

}  // namespace

std::byte* real(const void* address) {
  Region region;
  if (!find_region(address, region) || !is_memory(region.kind)) return nullptr;
  return region.real + (static_cast<const std::byte*>(address) - region.begin);
}

GpuMemory::~GpuMemory() {
  // The Gpu has removed its queues and marks.
  for (Region region; find_region_of(&gpu_, region);) {
    remove_region(region.begin);
    if (region.kind == Kind::registered || region.kind == Kind::piece) continue;
    ::munmap(region.begin, region.bytes);
    if (region.kind == Kind::device) ::munmap(region.real, region.bytes);
  }
}

Answer<std::byte*> GpuMemory::allocate(Region::Kind kind, size_t bytes) {
  if (auto begun = context_.begin_call("allocate"); !begun) return tl::make_unexpected(begun.error());
  if (bytes == 0) return refuse(Why::invalid, fmt::format("{} was asked for memory of 0 bytes", context_.name()));
  Region made;
  if (kind == Kind::device) {
    made = map_device_memory(bytes);
  } else {
    std::byte* const memory = map(bytes, PROT_READ | PROT_WRITE, -1);
    made = {memory, bytes, memory, kind, nullptr, nullptr};
  }
  if (made.begin == nullptr || made.real == nullptr)
    return refuse(Why::invalid, fmt::format("{} has no {} bytes of memory", context_.name(), bytes));
  made.gpu = &gpu_;
  add_region(made);
  return made.begin;
}

Answer<void> GpuMemory::free(const std::byte* memory) {
  if (auto begun = context_.begin_call("free"); !begun) return begun;
  context_.wait_for_all();
  Region region;
  const bool ours = find_region(memory, region) && region.begin == memory && region.gpu == &gpu_ &&
                    (region.kind == Kind::device || region.kind == Kind::managed || region.kind == Kind::pinned);
  if (!ours) return refuse(Why::invalid, fmt::format("free was called for memory that {} did not make", context_.name()));
  remove_region(memory);
  ::munmap(region.begin, region.bytes);
  if (region.kind == Kind::device) ::munmap(region.real, region.bytes);
  return {};
}

Answer<std::byte*> GpuMemory::pin(std::span<std::byte> memory, Pins how) {
  if (auto begun = context_.begin_set_up("pin"); !begun) return tl::make_unexpected(begun.error());
  const bool read_only = how == Pins::read_only;
  if (read_only && !context_.options().pins_read_only)
    return refuse(Why::unsupported, fmt::format("{} does not pin memory for reading alone", context_.name()));
  if (memory.empty() || reinterpret_cast<uintptr_t>(memory.data()) % kPage != 0 || memory.size() % kPage != 0)
    return refuse(Why::invalid, fmt::format("pin wants whole pages of {} bytes, and was given {} bytes at {}", kPage,
                                            memory.size(), fmt::ptr(memory.data())));
  std::byte* const address = map(memory.size(), PROT_NONE, -1);
  if (!add_region({memory.data(), memory.size(), memory.data(), Kind::registered, &gpu_, address, read_only})) {
    ::munmap(address, memory.size());
    return refuse(Why::already_pinned,
                  fmt::format("pin was called for memory at {} that is pinned already", fmt::ptr(memory.data())));
  }
  add_region({address, memory.size(), memory.data(), Kind::device_address, &gpu_, memory.data(), read_only});
  return address;
}

Answer<void> GpuMemory::unpin(const std::byte* memory) {
  if (auto begun = context_.begin_set_up("unpin"); !begun) return begun;
  Region region;
  if (!find_region(memory, region) || region.begin != memory || region.kind != Kind::registered)
    return refuse(Why::not_pinned, fmt::format("unpin was called for memory at {} that is not pinned", fmt::ptr(memory)));
  remove_region(memory);
  remove_region(region.twin);
  ::munmap(region.twin, region.bytes);
  return {};
}

namespace {

// The bytes from an address to the end of its region, and of the pieces of memory that lie behind it without a gap.
size_t bytes_from(const std::byte* begin, const Region& region) {
  size_t bytes = region.bytes - static_cast<size_t>(begin - region.begin);
  if (region.kind != Kind::piece) return bytes;
  Region next;
  while (find_region(begin + bytes, next) && next.kind == Kind::piece && next.gpu == region.gpu &&
         next.real - region.real == next.begin - region.begin)
    bytes += next.bytes;
  return bytes;
}

}  // namespace

Answer<std::byte*> GpuMemory::reach(const char* what, const std::byte* begin, size_t bytes, size_t rows, size_t pitch) const {
  Region region;
  if (!find_region(begin, region) || !is_memory(region.kind))
    return refuse(Why::invalid,
                  fmt::format("a copy {} {}, which is neither memory of a GPU nor pinned", what, fmt::ptr(begin)));
  if (region.kind == Kind::registered && !context_.options().takes_host_addresses)
    return refuse(Why::invalid, fmt::format("a copy {} {}, which is the host's address of pinned memory; the GPU finds it at "
                                            "PinnedMemory::device_address",
                                            what, fmt::ptr(begin)));
  const size_t left = bytes_from(begin, region);
  if ((rows - 1) * pitch + bytes > left)
    return refuse(Why::invalid, fmt::format("a copy {} {} of {} rows of {} bytes ends beyond its memory, which has {} bytes "
                                            "from there",
                                            what, fmt::ptr(begin), rows, bytes, left));
  return region.real + (begin - region.begin);
}

Answer<std::atomic<uint64_t>*> GpuMemory::word_at(const std::byte* word) const {
  if (reinterpret_cast<uintptr_t>(word) % sizeof(uint64_t) != 0)
    return refuse(Why::invalid, fmt::format("a word lies at {}, which is not a multiple of 8", fmt::ptr(word)));
  Region region;
  if (!find_region(word, region) || (region.kind != Kind::device_address && region.kind != Kind::pinned))
    return refuse(Why::invalid,
                  fmt::format("a word lies at {}, which is not an address of the GPU's in pinned memory", fmt::ptr(word)));
  if (region.read_only)
    return refuse(Why::invalid, fmt::format("a word lies at {}, which was pinned for reading alone", fmt::ptr(word)));
  return reinterpret_cast<std::atomic<uint64_t>*>(region.real + (word - region.begin));
}

}  // namespace fccl::core::simulated
