// Combines places from hwloc, interfaces from the kernel's list and speeds from /sys.
#include "discovery/host_topology.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "discovery/host_identity.h"
#include "discovery/sys_devices.h"
#include "os/error_text.h"

namespace fccl::core {
namespace {

using Hwloc = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

// hwloc needs only /sys here. These parts would start a GPU driver, talk to a display, visit every processor, or read the
// registers of every PCI device.
constexpr const char* kUnwantedParts[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "x86", "pci"};

// Returns null if hwloc knows nothing about this machine.
Hwloc load_hwloc() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return {nullptr, hwloc_topology_destroy};
  Hwloc owner(topology, hwloc_topology_destroy);
  for (const char* part : kUnwantedParts)
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, part);
  hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_icache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(topology) != 0) owner.reset();
  return owner;
}

using PciDevice = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

PciAddress address_of(const PciDevice& pci) { return {pci.domain, pci.bus, pci.dev, pci.func}; }

std::optional<int> only_node_of(hwloc_const_nodeset_t nodes) {
  if (nodes == nullptr || hwloc_bitmap_weight(nodes) != 1) return std::nullopt;
  return hwloc_bitmap_first(nodes);
}

// Returns the place of a device that is a PCI device or below one.
Place place_of_device(hwloc_topology_t topology, hwloc_obj_t device) {
  Place place;
  for (hwloc_obj_t at = device; at != nullptr; at = at->parent) {
    if (at->type == HWLOC_OBJ_PCI_DEVICE && !place.pci) place.pci = address_of(at->attr->pcidev);
    if (at->type == HWLOC_OBJ_BRIDGE && at->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
      place.under.insert(place.under.begin(), address_of(at->attr->bridge.upstream.pci));
  }
  // Keeps the nearest bridges. No real device has more.
  while (place.under.size() > Topology::kMostBridges) place.under.erase(place.under.begin());
  if (hwloc_obj_t owner = hwloc_get_non_io_ancestor_obj(topology, device)) place.numa = only_node_of(owner->nodeset);
  return place;
}

// Counts a display controller as a GPU only if NVIDIA made it, since servers have others for their consoles.
bool is_gpu(const PciDevice& pci) {
  constexpr unsigned short kDisplay = 0x0300, kAccelerator3d = 0x0302, kNvidia = 0x10de;
  return pci.class_id == kAccelerator3d || (pci.class_id == kDisplay && pci.vendor_id == kNvidia);
}

Result<std::set<std::string>> interfaces_that_are_up() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0)
    return fail(fcclSystemError, fmt::format("cannot list the network interfaces of this host: {}", error_text(errno)));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, ::freeifaddrs);
  std::set<std::string> names;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next)
    if ((entry->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP) names.insert(entry->ifa_name);
  return names;
}

// The devices that hwloc knows.
struct Devices {
  std::map<std::string, Place> interfaces;
  std::vector<Nic> rdma;
  std::vector<Gpu> gpus;
};

Devices devices_of(const Hwloc& hwloc) {
  Devices devices;
  if (!hwloc) return devices;
  hwloc_topology_t topology = hwloc.get();
  for (hwloc_obj_t at = hwloc_get_next_osdev(topology, nullptr); at != nullptr; at = hwloc_get_next_osdev(topology, at)) {
    if (at->name == nullptr) continue;
    if (at->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) devices.interfaces[at->name] = place_of_device(topology, at);
    if (at->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
      devices.rdma.push_back({at->name, SysDevices().speed_of_rdma_device(at->name), place_of_device(topology, at)});
  }
  for (hwloc_obj_t at = hwloc_get_next_pcidev(topology, nullptr); at != nullptr; at = hwloc_get_next_pcidev(topology, at))
    if (is_gpu(at->attr->pcidev)) devices.gpus.push_back({0, place_of_device(topology, at)});
  return devices;
}

}  // namespace

Result<Host> discover_host() {
  FCCL_TRY_ASSIGN(const auto interfaces, interfaces_that_are_up());
  Devices devices = devices_of(load_hwloc());
  Host host{host_name(), std::move(devices.rdma), std::move(devices.gpus), {}};
  const SysDevices sys;
  for (const std::string& name : interfaces) {
    const auto known = devices.interfaces.find(name);
    const bool ours = known != devices.interfaces.end() && sys.shows_interface(name);
    host.nics.push_back({name, sys.speed_of_interface(name), ours ? known->second : Place{}});
  }
  std::ranges::sort(host.nics, comes_before);
  std::sort(host.gpus.begin(), host.gpus.end(), [](const Gpu& a, const Gpu& b) { return a.place.pci < b.place.pci; });
  for (size_t i = 0; i < host.gpus.size(); ++i) host.gpus[i].index = static_cast<int>(i);
  return host;
}

}  // namespace fccl::core
