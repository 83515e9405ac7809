// What the kernel's /sys tells of this host's devices: where they sit, and how fast they are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "system/processors.h"
#include "topology/place.h"

namespace fccl {

// A value that reads files each time it is asked and keeps nothing; any thread may ask. What the kernel does not tell is empty,
// or 0. Places have the form that hwloc gives them (host_topology.h).
class SysDevices {
 public:
  // `root` stands for /sys.
  explicit SysDevices(std::filesystem::path root = "/sys") : root_(std::move(root)) {}

  // Of a PCI device.
  Place place_of(const PciAddress& address) const;
  // Of the PCI device that a network interface of this process's namespace belongs to.
  Place place_of_interface(const std::string& name) const;
  // In megabits per second and direction.
  int speed_of_interface(const std::string& name) const;
  int speed_of_rdma_device(const std::string& name) const;
  // Whether /sys speaks of the interface of that name here: it may have been mounted in another network namespace.
  bool shows_interface(const std::string& name) const;

  // The NUMA node that all of these processors are of, if it is one.
  std::optional<int> numa_node_of(const Processors& processors) const;

 private:
  Place place_at(const std::filesystem::path& device) const;

  std::filesystem::path root_;
};

}  // namespace fccl
