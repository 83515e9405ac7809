// Registers memory under a random key.
#include "ofi/regions.h"

#include <fmt/format.h>

#include "os/random.h"

namespace fccl::core::ofi {
namespace {

Result<Region> cannot_register(const Endpoint& endpoint, std::span<std::byte> memory, int number) {
  return fail(fcclSystemError,
              fmt::format("cannot register {} bytes at {} with {}: libfabric says \"{}\"; see the limit on locked memory "
                          "(ulimit -l) and how many registrations the NIC holds",
                          memory.size(), fmt::ptr(memory.data()), endpoint.text(), said(number)));
}

}  // namespace

Result<Region> open_region(const Endpoint& endpoint, std::span<std::byte> memory, uint64_t access) {
  fid_mr* handle = nullptr;
  FCCL_TRY_ASSIGN(auto key, random_bits());
  if (const size_t bytes = endpoint.info->domain_attr->mr_key_size; bytes < sizeof key) key &= (uint64_t{1} << bytes * 8) - 1;
  if (const int number = fi_mr_reg(endpoint.domain.get(), memory.data(), memory.size(), access, 0, key, 0, &handle, nullptr);
      number != 0)
    return cannot_register(endpoint, memory, number);
  Region region{.handle = MemoryRegion(handle), .descriptor = nullptr, .remote = {}};
  if ((endpoint.info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    if (const int number = fi_mr_bind(handle, &endpoint.handle->fid, 0); number != 0)
      return cannot_register(endpoint, memory, number);
    if (const int number = fi_mr_enable(handle); number != 0) return cannot_register(endpoint, memory, number);
  }
  region.descriptor = fi_mr_desc(handle);
  region.remote.key = fi_mr_key(handle);
  // For other providers a region begins at address 0.
  if (endpoint.has_virtual_addresses()) region.remote.address = reinterpret_cast<uint64_t>(memory.data());
  return region;
}

}  // namespace fccl::core::ofi
