// Reads /sys, where a device's path names all bridges above it.
#include "discovery/sys_devices.h"

#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string_view>
#include <system_error>

#include "topology/topology.h"

namespace fccl::core {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

// Returns the number at the beginning of a line such as "100 Gb/sec (4X EDR)"; 0 for any other line.
double leading_number(const std::string& line) {
  double value = 0;
  std::from_chars(line.data(), line.data() + line.size(), value);
  return std::isfinite(value) ? value : 0;
}

int speed_within_limits(double megabits) {
  return static_cast<int>(std::clamp(megabits, 0.0, double{Topology::kMostMegabits}));
}

// Removes the number at the front of the text, and returns it.
std::optional<size_t> take_number(std::string_view& text) {
  size_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

// Parses a list such as "0-3,8,10-11". Skips processors that the set has no room for.
Processors processors_in(std::string_view list) {
  Processors processors;
  while (const auto first = take_number(list)) {
    size_t last = *first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      last = take_number(list).value_or(*first);
    }
    for (size_t i = *first; i <= last && i < processors.size(); ++i) processors.set(i);
    if (!list.starts_with(',')) break;
    list.remove_prefix(1);
  }
  return processors;
}

// Returns the number of a folder such as "node3".
std::optional<int> node_number(const fs::path& folder) {
  const std::string name = folder.filename();
  if (!name.starts_with("node")) return std::nullopt;
  std::string_view digits = std::string_view(name).substr(4);
  const auto number = take_number(digits);
  if (!number || !digits.empty() || *number > size_t{Topology::kMostNuma}) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

Place SysDevices::place_of(const PciAddress& address) const { return place_at(root_ / "bus/pci/devices" / to_text(address)); }

Place SysDevices::place_of_interface(const std::string& name) const {
  return shows_interface(name) ? place_at(root_ / "class/net" / name / "device") : Place{};
}

// Uses the last PCI device in the path; a virtio or USB device stands below it.
Place SysDevices::place_at(const fs::path& device) const {
  std::error_code missing;
  const fs::path way = fs::canonical(device, missing);
  Place place;
  fs::path so_far, folder;
  for (const fs::path& part : way) {
    so_far /= part;
    const auto address = parse_pci_address(part.native());
    if (!address) continue;
    if (place.pci) place.under.push_back(*place.pci);
    place.pci = address;
    folder = so_far;
  }
  if (!place.pci) return {};
  // Keeps the nearest bridges. No real device has more.
  while (place.under.size() > Topology::kMostBridges) place.under.erase(place.under.begin());
  // Does not read numa_node, which is -1 on many machines with one node.
  place.numa = numa_node_of(processors_in(first_line(folder / "local_cpulist")));
  return place;
}

// An interface without a speed of its own reports -1 or nothing.
int SysDevices::speed_of_interface(const std::string& name) const {
  if (!shows_interface(name)) return 0;
  return speed_within_limits(leading_number(first_line(root_ / "class/net" / name / "speed")));
}

int SysDevices::speed_of_rdma_device(const std::string& name) const {
  constexpr double kMegabitsPerGigabit = 1000;
  const fs::path rate = root_ / "class/infiniband" / name / "ports/1/rate";
  return speed_within_limits(leading_number(first_line(rate)) * kMegabitsPerGigabit);
}

bool SysDevices::shows_interface(const std::string& name) const {
  const unsigned here = ::if_nametoindex(name.c_str());
  return here != 0 && leading_number(first_line(root_ / "class/net" / name / "ifindex")) == here;
}

std::optional<int> SysDevices::numa_node_of(const Processors& processors) const {
  std::optional<int> only;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_ / "devices/system/node", missing)) {
    const auto node = node_number(entry.path());
    if (!node || (processors_in(first_line(entry.path() / "cpulist")) & processors).none()) continue;
    if (only) return std::nullopt;
    only = node;
  }
  return only;
}

}  // namespace fccl::core
