// Asks libfabric for offers, and filters them by provider, name and address.
#include "ofi/nics.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "discovery/sys_devices.h"
#include "ofi/endpoint.h"
#include "settings/settings.h"
#include "sockets/listening_address.h"
#include "sockets/network_interface.h"
#include "topology/costs.h"
#include "topology/topology.h"

namespace fccl::core::ofi {
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

// Returns the name of the NIC that an offer is for, "" for an offer that cannot become a rail.
std::string_view nic_of(const fi_info& offer, const Provider& provider, std::string_view libfabric_name) {
  if (offer.fabric_attr->prov_name == nullptr || offer.fabric_attr->prov_name != libfabric_name) return "";
  if (provider.fabric != nullptr && std::string_view(offer.fabric_attr->name) != provider.fabric) return "";
  if (offer.domain_attr->name == nullptr) return "";
  // A link-local address means something on this host only.
  const auto address = is_socket(offer) ? address_of(offer) : std::nullopt;
  if (address && address->v6 && address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80) return "";
  return offer.domain_attr->name;
}

// EFA's NIC "rdmap79s0-rdm" is the device "rdmap79s0".
bool is_called(std::string_view nic, std::string_view name, const Provider& provider) {
  return nic == name || (!provider.of_interfaces && nic.starts_with(name) && nic[name.size()] == '-');
}

Nic described(const fi_info& offer) {
  Nic nic{.name = offer.domain_attr->name, .place = {}};
  if (offer.nic == nullptr) return nic;
  if (const fi_link_attr* link = offer.nic->link_attr; link != nullptr)
    nic.megabits = static_cast<int>(std::min<size_t>(link->speed / 1'000'000, Topology::kMostMegabits));
  if (const fi_bus_attr* bus = offer.nic->bus_attr; bus != nullptr && bus->bus_type == FI_BUS_PCI) {
    const fi_pci_attr& pci = bus->attr.pci;
    nic.place.pci = PciAddress{pci.domain_id, pci.bus_id, pci.device_id, pci.function_id};
  }
  return nic;
}

bool is_down(const fi_info& offer) {
  return offer.nic != nullptr && offer.nic->link_attr != nullptr && offer.nic->link_attr->state == FI_LINK_DOWN;
}

Result<Info> offers_of(const Provider& provider) {
  const Info hints = hints_for(provider, fi_version());
  if (!hints) return fail(fcclSystemError, "cannot ask libfabric for its providers: there is no memory");
  fi_info* found = nullptr;
  const int number = fi_getinfo(interface_version(fi_version()), nullptr, nullptr, 0, hints.get(), &found);
  if (number == 0) return Info(found);
  return fail(fcclSystemError, fmt::format("libfabric {} offers no provider \"{}\" on this host ({}); {}", installed_version(),
                                           libfabric_name(provider, fi_version()), said(number), provider.advice));
}

tl::unexpected<Error> no_nic(const Provider& provider, const std::string& name, const std::vector<Nic>& nics) {
  std::string names;
  for (const Nic& nic : nics) names += (names.empty() ? "" : ", ") + nic.name;
  return fail(fcclInvalidUsage,
              fmt::format("the provider {} of libfabric {} has no NIC \"{}\" that is up on this host; there are: {}",
                          provider.name, installed_version(), name, names));
}

Result<Nics> nics_of(const Provider& provider, const std::vector<std::string>& wanted) {
  FCCL_TRY_ASSIGN(const auto offers, offers_of(provider));
  Nics nics{.provider = &provider, .rails = {}};
  std::vector<std::string> names = wanted;
  std::optional<Address> address;
  if (names.empty()) {
    names.emplace_back();
    // If NICs are interfaces, the default is the one on which a process listens without any settings.
    if (auto chosen = choose_address(Settings{}); chosen && is_socket(*offers)) address = chosen->address;
  }
  for (const std::string& name : names) {
    const fi_info* offer = choose_offer(offers.get(), provider, fi_version(), {name, address});
    if (offer == nullptr && address) offer = choose_offer(offers.get(), provider, fi_version(), {name, {}});
    if (offer == nullptr) return no_nic(provider, name, nics_in(offers.get(), provider, fi_version()));
    Info rail(fi_dupinfo(offer));
    if (!rail) return fail(fcclSystemError, "cannot keep what libfabric offers: there is no memory");
    nics.rails.push_back(std::move(rail));
  }
  return nics;
}

// Keeps the NICs by which other hosts may be reached.
Result<std::vector<Nic>> usable(std::vector<Nic> nics, const Provider& provider) {
  if (!provider.of_interfaces) return nics;
  FCCL_TRY_ASSIGN(const auto interfaces, usable_interfaces());
  std::erase_if(nics, [&](const Nic& nic) { return std::ranges::find(interfaces, nic.name) == interfaces.end(); });
  return nics;
}

// Keeps the NICs with these names, each once.
Result<std::vector<Nic>> named(const std::vector<Nic>& nics, const Provider& provider, const std::vector<std::string>& names) {
  std::vector<Nic> chosen;
  for (const std::string& name : names) {
    const auto nic = std::ranges::find_if(nics, [&](const Nic& each) { return is_called(each.name, name, provider); });
    if (nic == nics.end()) return no_nic(provider, name, nics);
    if (std::ranges::find(chosen, nic->name, &Nic::name) == chosen.end()) chosen.push_back(*nic);
  }
  return chosen;
}

Result<OfferedNics> list_of(const Provider& provider, const std::vector<std::string>& names) {
  FCCL_TRY_ASSIGN(const auto offers, offers_of(provider));
  std::vector<Nic> all = nics_in(offers.get(), provider, fi_version());
  FCCL_TRY_ASSIGN(auto nics, names.empty() ? usable(std::move(all), provider) : named(all, provider, names));
  if (nics.empty())
    return fail(fcclSystemError, fmt::format("the provider {} of libfabric {} has no NIC on this host by which others can be "
                                             "reached; {}",
                                             provider.name, installed_version(), provider.advice));
  const SysDevices sys;
  const auto speed = [](const Nic& nic) { return nic.megabits; };
  for (Nic& nic : nics) {
    if (nic.place.pci) nic.place = sys.place_of(*nic.place.pci);
    if (!provider.of_interfaces) continue;
    nic.place = sys.place_of_interface(nic.name);
    nic.megabits = sys.speed_of_interface(nic.name);
  }
  // The slowest decides; 0, an unknown speed, is below all others.
  const int megabits = std::ranges::min(nics, {}, speed).megabits;
  return OfferedNics{std::string(provider.name), std::move(nics), *default_costs(provider.name, megabits)};
}

// Asks the provider of that name, or without a name the first provider that can answer.
template <class Ask>
auto of_best(const std::string& name, const Ask& ask) -> decltype(ask(providers().front())) {
  if (!name.empty()) {
    const Provider* provider = find_provider(name);
    if (provider != nullptr) return ask(*provider);
    return fail(fcclInvalidUsage, fmt::format("there is no provider \"{}\"; there are efa, verbs and tcp", name));
  }
  std::string reasons;
  for (const Provider& provider : providers()) {
    auto found = ask(provider);
    if (found) return found;
    reasons += (reasons.empty() ? "" : "; ") + std::move(found).error().message;
  }
  return fail(fcclSystemError, "no provider of libfabric can be used: " + reasons);
}

}  // namespace

const fi_info* choose_offer(const fi_info* offers, const Provider& provider, uint32_t installed, const Wish& wish) {
  const fi_info* second = nullptr;
  for (const fi_info* offer = offers; offer != nullptr; offer = offer->next) {
    const std::string_view name = nic_of(*offer, provider, libfabric_name(provider, installed));
    if (name.empty() || (!wish.nic.empty() && !is_called(name, wish.nic, provider))) continue;
    if (wish.address && address_of(*offer) != wish.address) continue;
    // All hosts must choose the same address family; hosts that have only one version of the Internet protocol have version 4.
    if (offer->addr_format != FI_SOCKADDR_IN6) return offer;
    if (second == nullptr) second = offer;
  }
  return second;
}

std::vector<Nic> nics_in(const fi_info* offers, const Provider& provider, uint32_t installed) {
  std::vector<Nic> nics;
  for (const fi_info* offer = offers; offer != nullptr; offer = offer->next) {
    const std::string_view name = nic_of(*offer, provider, libfabric_name(provider, installed));
    if (name.empty() || is_down(*offer) || std::ranges::find(nics, name, &Nic::name) != nics.end()) continue;
    nics.push_back(described(*offer));
  }
  return nics;
}

Result<Nics> find_nics(const TransportRequest& request) {
  return of_best(request.provider, [&](const Provider& provider) { return nics_of(provider, request.nics); });
}

Result<OfferedNics> list_nics(const NicsRequest& request) {
  return of_best(request.provider, [&](const Provider& provider) { return list_of(provider, request.names); });
}

}  // namespace fccl::core::ofi
