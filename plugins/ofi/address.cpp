// Lays out an address, and refuses one that this endpoint cannot use.
#include "ofi/address.h"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace fccl::core::ofi {
namespace {

// Precedes libfabric's own name. Two versions of a protocol cannot speak with each other, and would not report that.
struct Header {
  uint32_t protocol = 0;
  uint32_t version = 0;
  RemoteMemory mailbox;
  uint32_t notice_token = 0;
  uint32_t unused = 0;
};

// A socket's address names its family in its first bytes.
bool is_of_family(const Endpoint& endpoint, std::span<const std::byte> name) {
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, name.data(), sizeof(family));
  switch (endpoint.info->addr_format) {
    case FI_SOCKADDR_IN:
      return family == AF_INET;
    case FI_SOCKADDR_IN6:
      return family == AF_INET6;
    default:
      return true;
  }
}

}  // namespace

Result<std::vector<std::byte>> name_of(const Endpoint& endpoint) {
  std::vector<std::byte> name(Transport::kAddressBytes - sizeof(Header));
  size_t bytes = name.size();
  if (const int number = fi_getname(&endpoint.handle->fid, name.data(), &bytes); number != 0)
    return cannot(endpoint, "ask for the endpoint's name", number);
  name.resize(bytes);
  return name;
}

Result<std::vector<std::byte>> address_of(const Endpoint& endpoint, const Secrets& secrets) {
  const fi_ep_attr& own = *endpoint.info->ep_attr;
  const Header header{own.protocol, own.protocol_version, secrets.mailbox, secrets.notice_token};
  FCCL_TRY_ASSIGN(const auto name, name_of(endpoint));
  std::vector<std::byte> address(sizeof(header) + name.size());
  std::memcpy(address.data(), &header, sizeof(header));
  std::ranges::copy(name, address.begin() + sizeof(header));
  return address;
}

Result<Destination> read_address(const Endpoint& endpoint, std::span<const std::byte> address) {
  FCCL_TRY_ASSIGN(const auto own, address_of(endpoint, {}));
  if (address.size() != own.size())
    return fail(fcclInvalidArgument,
                fmt::format("cannot connect {}: the peer's address has {} bytes, those of this provider have {}; all processes "
                            "must use the same provider and the same version of the Internet protocol",
                            endpoint.text(), address.size(), own.size()));
  Header header;
  std::memcpy(&header, address.data(), sizeof(header));
  const fi_ep_attr& ours = *endpoint.info->ep_attr;
  if (header.protocol != ours.protocol || header.version != ours.protocol_version)
    return fail(
        fcclInvalidArgument,
        fmt::format("cannot connect {}: here libfabric {} speaks protocol {} version {}, the peer protocol {} version {}; "
                    "install the same libfabric on all hosts",
                    endpoint.text(), installed_version(), ours.protocol, ours.protocol_version, header.protocol,
                    header.version));
  const auto name = address.subspan(sizeof(header));
  if (!is_of_family(endpoint, name))
    return fail(fcclInvalidArgument, fmt::format("cannot connect {}: the peer's address is none of a socket", endpoint.text()));
  return Destination{{header.mailbox, header.notice_token}, {name.begin(), name.end()}};
}

}  // namespace fccl::core::ofi
