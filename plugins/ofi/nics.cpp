// NICs: which of what libfabric offers becomes a rail.
#include "ofi/nics.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <set>

#include "ofi/endpoint.h"
#include "system/network_interface.h"

namespace fccl::ofi {
namespace {

std::optional<Address> address_of(const fi_info& offer) {
  const auto* any = static_cast<const sockaddr*>(offer.src_addr);
  Address address;
  if (any != nullptr && any->sa_family == AF_INET && offer.src_addrlen >= sizeof(sockaddr_in)) {
    std::memcpy(address.bytes.data(), &static_cast<const sockaddr_in*>(offer.src_addr)->sin_addr, sizeof(in_addr));
    return address;
  }
  if (any != nullptr && any->sa_family == AF_INET6 && offer.src_addrlen >= sizeof(sockaddr_in6)) {
    address.v6 = true;
    std::memcpy(address.bytes.data(), &static_cast<const sockaddr_in6*>(offer.src_addr)->sin6_addr, sizeof(in6_addr));
    return address;
  }
  return std::nullopt;
}

bool is_socket(const fi_info& offer) {
  return offer.addr_format == FI_SOCKADDR || offer.addr_format == FI_SOCKADDR_IN || offer.addr_format == FI_SOCKADDR_IN6;
}

// The name of the NIC an offer is for, "" for an offer that no rail can be made of.
std::string_view nic_of(const fi_info& offer, const Provider& provider, std::string_view libfabric_name) {
  if (offer.fabric_attr->prov_name == nullptr || offer.fabric_attr->prov_name != libfabric_name) return "";
  if (provider.fabric != nullptr && std::string_view(offer.fabric_attr->name) != provider.fabric) return "";
  if (offer.domain_attr->name == nullptr) return "";
  // An address that means something on this host alone.
  const auto address = is_socket(offer) ? address_of(offer) : std::nullopt;
  if (address && address->v6 && address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80) return "";
  return offer.domain_attr->name;
}

std::string names_in(const fi_info* offers, const Provider& provider) {
  std::set<std::string> names;
  for (const fi_info* offer = offers; offer != nullptr; offer = offer->next)
    names.emplace(nic_of(*offer, provider, libfabric_name(provider, fi_version())));
  names.erase("");
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Nics> nics_of(const Provider& provider, const std::vector<std::string>& wanted) {
  const Info hints = hints_for(provider, fi_version());
  if (!hints) return fail(fcclSystemError, "cannot ask libfabric for its providers: there is no memory");
  fi_info* found = nullptr;
  const int number = fi_getinfo(interface_version(fi_version()), nullptr, nullptr, 0, hints.get(), &found);
  const Info offers(found);
  if (number != 0)
    return fail(fcclSystemError,
                fmt::format("libfabric {} offers no provider \"{}\" on this host ({}); {}", installed_version(),
                            libfabric_name(provider, fi_version()), said(number), provider.advice));
  Nics nics{.provider = &provider, .rails = {}};
  std::vector<std::string> names = wanted;
  std::optional<Address> address;
  if (names.empty()) {
    names.emplace_back();
    // Where NICs are interfaces, the one that this process listens on too.
    if (auto chosen = choose_address(""); chosen && is_socket(*offers)) address = *chosen;
  }
  for (const std::string& name : names) {
    const fi_info* offer = choose_offer(offers.get(), provider, fi_version(), {name, address});
    if (offer == nullptr && address) offer = choose_offer(offers.get(), provider, fi_version(), {name, {}});
    if (offer == nullptr)
      return fail(fcclInvalidUsage, fmt::format("the provider {} of libfabric {} has no NIC \"{}\" on this host; there are: {}",
                                                provider.name, installed_version(), name, names_in(offers.get(), provider)));
    Info rail(fi_dupinfo(offer));
    if (!rail) return fail(fcclSystemError, "cannot keep what libfabric offers: there is no memory");
    nics.rails.push_back(std::move(rail));
  }
  return nics;
}

}  // namespace

const fi_info* choose_offer(const fi_info* offers, const Provider& provider, uint32_t installed, const Wish& wish) {
  const fi_info* second = nullptr;
  for (const fi_info* offer = offers; offer != nullptr; offer = offer->next) {
    const std::string_view name = nic_of(*offer, provider, libfabric_name(provider, installed));
    if (name.empty() || (!wish.nic.empty() && name != wish.nic)) continue;
    if (wish.address && address_of(*offer) != wish.address) continue;
    // All hosts must choose the same; those that have one version of the Internet protocol have 4.
    if (offer->addr_format != FI_SOCKADDR_IN6) return offer;
    if (second == nullptr) second = offer;
  }
  return second;
}

Result<Nics> find_nics(const TransportRequest& request) {
  if (!request.provider.empty()) {
    const Provider* provider = find_provider(request.provider);
    if (provider == nullptr)
      return fail(fcclInvalidUsage, fmt::format("there is no provider \"{}\"; there are efa, verbs and tcp", request.provider));
    return nics_of(*provider, request.nics);
  }
  std::string reasons;
  for (const Provider& provider : providers()) {
    auto nics = nics_of(provider, request.nics);
    if (nics) return nics;
    reasons += (reasons.empty() ? "" : "; ") + std::move(nics).error().message;
  }
  return fail(fcclSystemError, "no provider of libfabric can be used: " + reasons);
}

}  // namespace fccl::ofi
