// Ranks the host's addresses by the variables, the default route and the order of interfaces.
#include "sockets/listening_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <tuple>

#include "os/log.h"
#include "settings/port_range.h"
#include "settings/settings.h"
#include "sockets/network_interface.h"

namespace fccl::core {
namespace {

constexpr const char* kVariables[] = {"FCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"};
constexpr const char* kReasons[] = {"which FCCL_SOCKET_IFNAME names",     "which NCCL_SOCKET_IFNAME names",
                                    "which GLOO_SOCKET_IFNAME names",     "which reaches MASTER_ADDR",
                                    "the interface of the default route", "the first that is up"};

// Addresses reserved for documentation. No host has them, so a route to them is the default route.
constexpr Address kSomewhere{false, {192, 0, 2, 1}, 9};
constexpr Address kSomewhere6{true, {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 9};

// The parsed text of a variable.
struct Names {
  ChosenBy by = ChosenBy::order;
  std::string_view text;
  bool leaves_out = false;
  bool whole = false;
  std::vector<std::string_view> names;

  bool are_given() const { return by != ChosenBy::order; }
  std::string said() const { return fmt::format("{}={}", kVariables[static_cast<size_t>(by)], text); }

  // Returns the place of the first name that fits, or nothing.
  std::optional<size_t> place_of(std::string_view interface_name) const {
    const auto fits = [&](std::string_view name) { return whole ? interface_name == name : interface_name.starts_with(name); };
    const auto found = std::ranges::find_if(names, fits);
    return found == names.end() ? std::nullopt : std::optional<size_t>(found - names.begin());
  }
  bool allow(std::string_view interface_name) const { return place_of(interface_name).has_value() != leaves_out; }
};

Names names_in(const Settings& settings) {
  Names given;
  const std::string* texts[] = {&settings.interface_name, &settings.nccl_interface_name, &settings.gloo_interface_name};
  const auto set = std::ranges::find_if(texts, [](const std::string* text) { return !text->empty(); });
  if (set == std::end(texts)) return given;
  given.by = static_cast<ChosenBy>(set - std::begin(texts));
  given.text = **set;
  std::string_view rest = given.text;
  if (given.by == ChosenBy::gloo_variable) {
    given.whole = true;
  } else {
    given.leaves_out = rest.starts_with('^');
    rest.remove_prefix(given.leaves_out ? 1 : 0);
    given.whole = rest.starts_with('=');
    rest.remove_prefix(given.whole ? 1 : 0);
  }
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (!name.empty()) given.names.push_back(name);
  }
  return given;
}

using Addresses = std::vector<InterfaceAddress>;

ListeningAddress chosen(const InterfaceAddress& from, ChosenBy by) { return {from.address, from.interface_name, by}; }

// Returns the best of the allowed addresses. An interface of an earlier name wins, then a name that matches the whole
// interface.
const InterfaceAddress& best_of(const Addresses& addresses, const Names& names) {
  const auto drawbacks = [&](const InterfaceAddress& each) {
    const std::optional<size_t> place = names.place_of(each.interface_name);
    const bool is_whole = place && names.names[*place] == each.interface_name;
    return std::tuple{place.value_or(0), place && !is_whole, !place && each.is_loopback, !place && each.is_container_bridge,
                      each.address.v6};
  };
  return *std::ranges::min_element(addresses, {}, drawbacks);
}

const InterfaceAddress* find(const Addresses& addresses, const std::optional<Address>& wanted) {
  const auto found = std::ranges::find_if(addresses, [&](const auto& each) { return wanted && each.address == *wanted; });
  return found == addresses.end() ? nullptr : &*found;
}

// Returns the address that reaches `host`. Ignores the loopback, because many hosts files map the host's own name to it.
const InterfaceAddress* towards_host(const Addresses& addresses, const std::string& host) {
  if (host.empty()) return nullptr;
  for (const Address& there : addresses_of_host(host))
    if (const InterfaceAddress* way = find(addresses, local_address_towards(there)); way != nullptr && !way->is_loopback)
      return way;
  return nullptr;
}

const InterfaceAddress* of_default_route(const Addresses& addresses) {
  for (const Address& somewhere : {kSomewhere, kSomewhere6})
    if (const InterfaceAddress* way = find(addresses, local_address_towards(somewhere))) return way;
  return nullptr;
}

void warn_once_of(const Names& names, const Addresses& all) {
  static constinit std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  log(LogLevel::warn, fmt::format("{} fits no network interface of this host and has no effect; up are: {}; "
                                  "FCCL_SOCKET_IFNAME counts before it",
                                  names.said(), to_text(all)));
}

template <class Take>
Result<Descriptor> on_allowed_port(const Address& where, const Settings& settings, const Take& take) {
  if (settings.socket_ports.empty()) return take(where, 0);
  const PortRange ports = port_range_in(settings.socket_ports).value_or(PortRange{});
  Address address = where;
  address.port = ports.first;
  Result<Descriptor> taken = take(address, ports.last);
  if (taken) return taken;
  return fail(
      MessageKind::no_port,
      fmt::format(
          "{}, nor on any port before it of FCCL_SOCKET_PORTS={}: each communicator that is being made takes two, also on "
          "one host; of several hosts each of its ranks keeps one",
          taken.error().message, settings.socket_ports));
}

}  // namespace

std::string describe(const std::string& interface_name, ChosenBy by) {
  return fmt::format("{}, {}", interface_name, kReasons[static_cast<size_t>(by)]);
}

Result<ListeningAddress> choose_address(const Settings& settings) {
  FCCL_TRY_ASSIGN(const auto all, interface_addresses());
  return choose_address(settings, all);
}

Result<ListeningAddress> choose_address(const Settings& settings, const std::vector<InterfaceAddress>& all) {
  if (all.empty()) return fail(fcclSystemError, "no network interface of this host is up, not even the loopback");
  Names names = names_in(settings);
  Addresses allowed = all;
  std::erase_if(allowed, [&](const auto& each) { return names.are_given() && !names.allow(each.interface_name); });
  if (allowed.empty() && names.by == ChosenBy::fccl_variable)
    return fail(MessageKind::wrong_setting,
                fmt::format("{} fits no network interface of this host that is up; up are: {}", names.said(), to_text(all)));
  if (allowed.empty()) {
    warn_once_of(names, all);
    allowed = all;
    names = {};
  }
  if (names.are_given() && !names.leaves_out) return chosen(best_of(allowed, names), names.by);
  if (const auto* way = towards_host(allowed, settings.master_address)) return chosen(*way, ChosenBy::master_address);
  if (const auto* way = of_default_route(allowed)) return chosen(*way, ChosenBy::default_route);
  return chosen(best_of(allowed, {}), ChosenBy::order);
}

Result<Descriptor> listen_at(const ListeningAddress& where, const Settings& settings) {
  return on_allowed_port(where.address, settings, listen_tcp);
}

Result<Descriptor> hold_at(const Address& where, const Settings& settings) {
  auto held = on_allowed_port(where, settings, hold_port);
  return held || settings.socket_ports.empty() ? std::move(held) : hold_port(where, 0);
}

}  // namespace fccl::core
