// SysDevices: places and speeds of this host's devices, read from the kernel's /sys.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "os/processors.h"
#include "topology/place.h"

namespace fccl::core {

// A value that reads files at each call and caches nothing; any thread may call. Unknown results are empty or 0. Places have
// the form that hwloc gives them (host_topology.h).
class SysDevices {
 public:
  // `root` replaces /sys in tests.
  explicit SysDevices(std::filesystem::path root = "/sys") : root_(std::move(root)) {}

  // Returns the place of a PCI device.
  Place place_of(const PciAddress& address) const;
  // Returns the place of the PCI device behind a network interface of this process's namespace.
  Place place_of_interface(const std::string& name) const;
  // Return the speed in megabits per second and direction.
  int speed_of_interface(const std::string& name) const;
  int speed_of_rdma_device(const std::string& name) const;
  // True if /sys shows this namespace's interface of that name; /sys may have been mounted in another network namespace.
  bool shows_interface(const std::string& name) const;

  // Returns the NUMA node of these processors; nothing unless all belong to one node.
  std::optional<int> numa_node_of(const Processors& processors) const;

 private:
  Place place_at(const std::filesystem::path& device) const;

  std::filesystem::path root_;
};

}  // namespace fccl::core
