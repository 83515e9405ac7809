// Makes and reads a memfd with all seals.
#include "os/sealed_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/error_text.h"

namespace fccl::core {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Descriptor sealed_memory(const char* name, const std::string& bytes) {
  Descriptor memory(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || !std::in_range<off_t>(bytes.size())) return {};
  for (size_t put = 0; put < bytes.size();) {
    const ssize_t more = ::pwrite(memory.get(), bytes.data() + put, bytes.size() - put, static_cast<off_t>(put));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return {};
    put += static_cast<size_t>(more);
  }
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) return {};
  return memory;
}

Result<std::string> read_sealed_memory(const Descriptor& memory, size_t size) {
  struct stat identity{};
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  // Systems that forbid to execute such memory add a seal.
  if (::fstat(memory.get(), &identity) != 0 || seals < 0 || (seals & kSeals) != kSeals ||
      std::cmp_not_equal(identity.st_size, size))
    return fail(fcclInternalError, "the memory is not sealed, or not as long as it should be");
  std::string bytes(size, '\0');
  for (size_t got = 0; got < size;) {
    const ssize_t more = ::pread(memory.get(), bytes.data() + got, size - got, static_cast<off_t>(got));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) {
      const int error = more < 0 ? errno : EIO;
      return fail(system_error(error), fmt::format("the memory cannot be read: {}", error_text(error)));
    }
    got += static_cast<size_t>(more);
  }
  return bytes;
}

}  // namespace fccl::core
