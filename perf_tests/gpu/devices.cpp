// Counts the ranks and the GPUs of this host.
#include "gpu/devices.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/driver.h"

namespace fccl::perf {
namespace {

struct HostName {
  char text[64];
};

// Returns how many processes of this host precede this one.
int place_on_host(const Processes& processes) {
  HostName own{};
  gethostname(own.text, sizeof own.text - 1);
  const auto names = processes.all_gather(own);
  return static_cast<int>(std::count_if(names.begin(), names.begin() + processes.process(),
                                        [&](const HostName& name) { return std::strcmp(name.text, own.text) == 0; }));
}

Result<int> first_gpu(const std::string& text, int gpus) {
  int first = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), first);
  if (error != std::errc{} || end != text.data() + text.size() || first < 0 || first >= gpus)
    return Error{fcclInvalidArgument, "FCCL_TESTS_DEVICE (or NCCL_TESTS_DEVICE) is '" + text +
                                          "', and this process sees GPUs 0 to " + std::to_string(gpus - 1) +
                                          ": give one of them"};
  return first;
}

Result<DeviceInfo> describe(const GpuDriver& driver, int ordinal) {
  DeviceInfo info{.ordinal = ordinal};
  int device = 0;
  char bus_id[32] = "";
  auto asked = driver.check(driver.get(&device, ordinal), "cuDeviceGet");
  if (asked) asked = driver.check(driver.name(info.name, sizeof info.name, device), "cuDeviceGetName");
  if (asked) asked = driver.check(driver.bus_id(bus_id, sizeof bus_id, device), "cuDeviceGetPCIBusId");
  if (asked) asked = driver.check(driver.total_bytes(&info.bytes, device), "cuDeviceTotalMem");
  if (!asked) return asked.error();
  std::sscanf(bus_id, "%x:%x:%x", &info.domain, &info.bus, &info.slot);
  return info;
}

}  // namespace

std::vector<int> ordinals_of(int first, int ranks, int gpus) {
  std::vector<int> ordinals;
  ordinals.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) ordinals.push_back((first + rank) % gpus);
  return ordinals;
}

Result<std::vector<DeviceInfo>> choose_gpus(const Arguments& arguments, const Environment& environment,
                                            const Processes& processes) {
  const int ranks = arguments.ranks_per_process();
  const int place = place_on_host(processes);
  // Streams of ranks that share a GPU must not share a queue of it, where one rank's call would wait behind another's, and for
  // it. CUDA allows at most 32; the driver reads it when it is initialised.
  if (ranks > 1) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const auto driver = gpu_driver();
  if (!driver) return driver.error();
  int gpus = 0;
  if (auto counted = (*driver)->check((*driver)->count(&gpus), "cuDeviceGetCount"); !counted) return counted.error();
  int first = place * ranks;
  if (environment.device) {
    const auto given = first_gpu(*environment.device, gpus);
    if (!given) return given.error();
    first = *given;
  }
  if (arguments.null_stream() && ranks > gpus)
    return Error{
        fcclInvalidArgument,
        "-y 1 with " + std::to_string(ranks) + " ranks as threads on " + std::to_string(gpus) +
            " GPUs: ranks of one process that share a GPU share its default stream, in which the call of one would wait "
            "behind that of another, and wait for it; give -y 0, or a process for each rank"};
  std::vector<DeviceInfo> chosen;
  for (const int ordinal : ordinals_of(first, ranks, gpus)) {
    const auto described = describe(**driver, ordinal);
    if (!described) return described.error();
    chosen.push_back(*described);
  }
  return chosen;
}

}  // namespace fccl::perf
