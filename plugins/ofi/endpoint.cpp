// Endpoint: what a rail is made of in libfabric.
#include "ofi/endpoint.h"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <cstring>

#include "wire/transport.h"

namespace fccl::ofi {
namespace {

// Before libfabric's own name, since two versions of a protocol do not speak with each other and would not say so.
struct Protocol {
  uint32_t number = 0;
  uint32_t version = 0;

  bool operator==(const Protocol&) const = default;
};

Protocol protocol_of(const Endpoint& endpoint) {
  return {endpoint.info->ep_attr->protocol, endpoint.info->ep_attr->protocol_version};
}

tl::unexpected<Error> cannot(const Endpoint& endpoint, std::string_view what, ssize_t number) {
  return fail(fcclSystemError, fmt::format("cannot {} for {}: libfabric says \"{}\"; FI_LOG_LEVEL=warn shows more", what,
                                           endpoint.text(), said(number)));
}

Result<void> open_objects(Endpoint& endpoint, Room room) {
  fid_fabric* fabric = nullptr;
  if (const int number = fi_fabric(endpoint.info->fabric_attr, &fabric, nullptr); number != 0)
    return cannot(endpoint, "open the fabric", number);
  endpoint.fabric.reset(fabric);

  fid_domain* domain = nullptr;
  if (const int number = fi_domain(fabric, endpoint.info.get(), &domain, nullptr); number != 0)
    return cannot(endpoint, "open the NIC", number);
  endpoint.domain.reset(domain);

  fi_av_attr addresses_wanted{};
  addresses_wanted.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  if (const int number = fi_av_open(domain, &addresses_wanted, &addresses, nullptr); number != 0)
    return cannot(endpoint, "make the table of addresses", number);
  endpoint.addresses.reset(addresses);

  fi_cq_attr completions_wanted{};
  completions_wanted.size = room.operations + room.messages + endpoint.provider->arrivals;
  // The least that has an immediate in it.
  completions_wanted.format = FI_CQ_FORMAT_DATA;
  completions_wanted.wait_obj = FI_WAIT_NONE;
  fid_cq* completions = nullptr;
  if (const int number = fi_cq_open(domain, &completions_wanted, &completions, nullptr); number != 0)
    return cannot(endpoint, "make the queue of completions", number);
  endpoint.completions.reset(completions);

  fid_ep* handle = nullptr;
  if (const int number = fi_endpoint(domain, endpoint.info.get(), &handle, nullptr); number != 0)
    return cannot(endpoint, "open an endpoint", number);
  endpoint.handle.reset(handle);
  return {};
}

// An option that is not there forbids nothing, but then there is nothing to forbid.
Result<void> forbid(const Endpoint& endpoint, const NewerOption& option) {
  if (FI_VERSION_LT(fi_version(), option.since)) return {};
  const bool permitted = false;
  const int number = fi_setopt(&endpoint.handle->fid, FI_OPT_ENDPOINT, option.name, &permitted, sizeof(permitted));
  if (number == 0 || number == -FI_ENOPROTOOPT || number == -FI_EOPNOTSUPP) return {};
  return cannot(endpoint, fmt::format("switch off option {}", option.name), number);
}

}  // namespace

std::string said(ssize_t number) { return fi_strerror(static_cast<int>(number < 0 ? -number : number)); }

std::string installed_version() { return fmt::format("{}.{}", FI_MAJOR(fi_version()), FI_MINOR(fi_version())); }

std::string Endpoint::text() const { return fmt::format("{} on {}", provider->name, info->domain_attr->name); }

Result<Endpoint> open_endpoint(const Provider& provider, Info info, Room room) {
  Endpoint endpoint;
  endpoint.provider = &provider;
  endpoint.info = std::move(info);
  FCCL_TRY(open_objects(endpoint, room));
  if (const int number = fi_ep_bind(endpoint.handle.get(), &endpoint.addresses->fid, 0); number != 0)
    return cannot(endpoint, "bind the table of addresses", number);
  if (const int number = fi_ep_bind(endpoint.handle.get(), &endpoint.completions->fid, FI_TRANSMIT | FI_RECV); number != 0)
    return cannot(endpoint, "bind the queue of completions", number);
  for (const NewerOption& option : provider.forbidden) FCCL_TRY(forbid(endpoint, option));
  if (const int number = fi_enable(endpoint.handle.get()); number != 0) return cannot(endpoint, "enable the endpoint", number);
  return endpoint;
}

bool writes_natively(const Endpoint& endpoint) {
  const NewerOption& option = endpoint.provider->emulates_writes;
  if (option.name == 0) return true;
  // A version that cannot be asked has no write of the NIC's own either.
  if (FI_VERSION_LT(fi_version(), option.since)) return false;
  bool emulated = true;
  size_t bytes = sizeof(emulated);
  return fi_getopt(&endpoint.handle->fid, FI_OPT_ENDPOINT, option.name, &emulated, &bytes) == 0 && !emulated;
}

Result<std::vector<std::byte>> name_of(const Endpoint& endpoint) {
  const Protocol protocol = protocol_of(endpoint);
  std::vector<std::byte> name(Transport::kAddressBytes);
  std::memcpy(name.data(), &protocol, sizeof(protocol));
  size_t bytes = name.size() - sizeof(protocol);
  if (const int number = fi_getname(&endpoint.handle->fid, name.data() + sizeof(protocol), &bytes); number != 0)
    return cannot(endpoint, "ask for the endpoint's name", number);
  name.resize(sizeof(protocol) + bytes);
  return name;
}

Result<std::span<const std::byte>> libfabric_name_in(const Endpoint& endpoint, std::span<const std::byte> name) {
  auto own = name_of(endpoint);
  if (!own) return fail(std::move(own).error());
  if (name.size() != own->size())
    return fail(fcclInvalidArgument,
                fmt::format("cannot connect {}: the peer's address has {} bytes, those of this provider have {}; all processes "
                            "must use the same provider and the same version of the Internet protocol",
                            endpoint.text(), name.size(), own->size()));
  Protocol theirs;
  std::memcpy(&theirs, name.data(), sizeof(theirs));
  if (const Protocol ours = protocol_of(endpoint); theirs != ours)
    return fail(fcclInvalidArgument,
                fmt::format("cannot connect {}: here libfabric {} speaks protocol {} version {}, the peer protocol {} version {}; "
                            "install the same libfabric on all hosts",
                            endpoint.text(), installed_version(), ours.number, ours.version, theirs.number, theirs.version));
  const auto libfabric_name = name.subspan(sizeof(theirs));
  // A socket's address names its family in its first bytes.
  const uint32_t format = endpoint.info->addr_format;
  const bool is_socket = format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
  if (is_socket && std::memcmp(libfabric_name.data(), own->data() + sizeof(theirs), sizeof(sa_family_t)) != 0)
    return fail(fcclInvalidArgument, fmt::format("cannot connect {}: the peer's address is not one of a socket", endpoint.text()));
  return libfabric_name;
}

}  // namespace fccl::ofi
