// Takes random bits from the kernel's generator.
#include "os/random.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fccl::core {

Result<uint64_t> random_bits() {
  uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) == 0) return bits;
  return fail(fcclSystemError,
              fmt::format("cannot make a secret for the network: getentropy says \"{}\"", std::strerror(errno)));
}

}  // namespace fccl::core
