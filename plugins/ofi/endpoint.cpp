// Opens the objects of an endpoint, in the order in which they need each other.
#include "ofi/endpoint.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

namespace fccl::core::ofi {
namespace {

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
  // The smallest format that has an immediate.
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

// An unknown option cannot be forbidden, but the provider then has no such feature.
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

tl::unexpected<Error> cannot(const Endpoint& endpoint, std::string_view what, ssize_t number) {
  return fail(fcclSystemError, fmt::format("cannot {} for {}: libfabric says \"{}\"; FI_LOG_LEVEL=warn shows more", what,
                                           endpoint.text(), said(number)));
}

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

}  // namespace fccl::core::ofi
