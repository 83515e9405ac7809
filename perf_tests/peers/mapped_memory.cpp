// Uses a file without a name, which the other ranks open through /proc.
#include "peers/mapped_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace fccl::perf {
namespace {

Error failure(const std::string& attempt) {
  return {fcclSystemError, attempt + " failed: " + std::strerror(errno) +
                               "; --peer limit is for ranks of one host that see each other in /proc"};
}

// Closes its descriptor at its end.
struct File {
  explicit File(int opened) : descriptor(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }

  const int descriptor;
};

// Returns a number that distinguishes a file in memory from all others on its host.
double number_of(int descriptor) {
  struct stat seen{};
  return fstat(descriptor, &seen) == 0 ? static_cast<double>(seen.st_ino) : 0;
}

Result<std::byte*> map(int descriptor, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return failure("mapping " + std::to_string(bytes) + " bytes");
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

MappedMemory::~MappedMemory() {
  for (const Segment& segment : segments_) {
    for (std::byte* begin : segment.begins) {
      if (begin != nullptr) munmap(begin, segment.bytes);
    }
  }
}

Result<std::byte*> MappedMemory::allocate(std::size_t bytes) {
  const File file(memfd_create("fccl-limit", MFD_CLOEXEC));
  if (file.descriptor < 0 || ftruncate(file.descriptor, static_cast<off_t>(bytes)) != 0)
    return failure("making a file of " + std::to_string(bytes) + " bytes in memory");
  const auto own = map(file.descriptor, bytes);
  if (!own) return own.error();
  Segment& segment = segments_.emplace_back(Segment{bytes, {}});
  segment.begins.resize(static_cast<std::size_t>(team_.ranks()));
  segment.begins[static_cast<std::size_t>(team_.rank(thread_))] = *own;
  // The owner writes first, so that the pages lie near its core.
  std::memset(*own, 0, bytes);
  if (const auto mapped = map_peers(segment, file.descriptor); !mapped) return mapped.error();
  team_.barrier(thread_);  // every rank has opened it
  return *own;
}

Result<void> MappedMemory::map_peers(Segment& segment, int file) {
  const auto ranks = static_cast<std::size_t>(team_.ranks());
  const auto own = static_cast<std::size_t>(team_.rank(thread_));
  // Each rank sets its own three numbers, and leaves those of the others zero.
  std::vector<Part> told(3 * ranks, {0, Combine::sum});
  told[3 * own].value = getpid();
  told[3 * own + 1].value = file;
  told[3 * own + 2].value = number_of(file);
  const std::vector<double> all = team_.combine(thread_, told);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (rank == own) continue;
    const std::string path = "/proc/" + std::to_string(static_cast<int>(all[3 * rank])) + "/fd/" +
                             std::to_string(static_cast<int>(all[3 * rank + 1]));
    const File theirs(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    const bool is_open = theirs.descriptor >= 0;
    if (is_open) errno = ESTALE;  // for a file that is another one
    if (!is_open || number_of(theirs.descriptor) != all[3 * rank + 2])
      return failure("opening " + path + ", the memory of rank " + std::to_string(rank) + ",");
    const auto mapped = map(theirs.descriptor, segment.bytes);
    if (!mapped) return mapped.error();
    segment.begins[rank] = *mapped;
    madvise(*mapped, segment.bytes, MADV_POPULATE_WRITE);
  }
  return {};
}

std::byte* MappedMemory::of(int rank, const void* own) const {
  const auto* at = static_cast<const std::byte*>(own);
  const auto me = static_cast<std::size_t>(team_.rank(thread_));
  for (const Segment& segment : segments_) {
    const std::byte* begin = segment.begins[me];
    if (at >= begin && at < begin + segment.bytes) return segment.begins[static_cast<std::size_t>(rank)] + (at - begin);
  }
  return nullptr;
}

}  // namespace fccl::perf
