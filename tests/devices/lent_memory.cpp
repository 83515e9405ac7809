// LentMemory: a memfd, mapped where nobody may touch it and where the threads of GPUs find it.
#include "devices/lent_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/rounding.h"

namespace fccl::core::simulated {

namespace {

using Why = Refusal::Why;

std::byte* map_shared(size_t bytes, int protection, int file) {
  void* const made = ::mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

}  // namespace

Answer<std::unique_ptr<LentMemory>> LentMemory::map(Gpu& gpu, Descriptor file, size_t bytes, bool read_only) {
  std::byte* const seen = map_shared(bytes, PROT_NONE, file.get());
  std::byte* const used = map_shared(bytes, read_only ? PROT_READ : PROT_READ | PROT_WRITE, file.get());
  if (seen == nullptr || used == nullptr)
    return refuse(Why::invalid, fmt::format("{} has no {} bytes of memory", gpu.context().name(), bytes));
  const Region region{seen, bytes, used, Region::Kind::piece, &gpu, nullptr, read_only};
  add_region(region);
  return std::unique_ptr<LentMemory>(new LentMemory(std::move(file), region));
}

Answer<std::unique_ptr<LentMemory>> LentMemory::make(Gpu& gpu, size_t bytes) {
  if (auto begun = gpu.context().begin_set_up("make_memory"); !begun) return tl::make_unexpected(begun.error());
  bytes = rounded_up(bytes, static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  Descriptor file(::memfd_create("fccl-simulated-gpu", MFD_CLOEXEC));
  if (bytes == 0 || !file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return refuse(Why::invalid, fmt::format("{} has no {} bytes of memory", gpu.context().name(), bytes));
  return map(gpu, std::move(file), bytes, false);
}

Answer<std::unique_ptr<LentMemory>> LentMemory::borrow(Gpu& gpu, int lent, size_t bytes, Access access) {
  if (auto begun = gpu.context().begin_set_up("borrow"); !begun) return tl::make_unexpected(begun.error());
  if (!gpu.options().borrows)
    return refuse(Why::broken, fmt::format("{} does not reach the GPU whose memory it borrows", gpu.context().name()));
  Descriptor file(::fcntl(lent, F_DUPFD_CLOEXEC, 0));
  struct stat about{};
  if (!file || ::fstat(file.get(), &about) != 0 || static_cast<size_t>(about.st_size) < bytes)
    return refuse(Why::invalid, fmt::format("{} was lent no memory of {} bytes", gpu.context().name(), bytes));
  return map(gpu, std::move(file), static_cast<size_t>(about.st_size), access == Access::read);
}

LentMemory::~LentMemory() {
  remove_region(region_.begin);
  ::munmap(region_.begin, region_.bytes);
  ::munmap(region_.real, region_.bytes);
}

Answer<Descriptor> LentMemory::lend(Gpu& gpu) const {
  if (auto begun = gpu.context().begin_set_up("lend"); !begun) return tl::make_unexpected(begun.error());
  return Descriptor(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
}

Answer<void> LentMemory::share_with(Gpu& user, Access access) const {
  if (auto begun = user.context().begin_set_up("share"); !begun) return begun;
  if ((user.options().cannot_reach >> region_.gpu->options().ordinal & 1) != 0)
    return refuse(Why::unsupported, fmt::format("{} cannot reach {}", user.context().name(), region_.gpu->context().name()));
  let_use(region_.begin, user.options().ordinal, access == Access::write);
  return {};
}

}  // namespace fccl::core::simulated
