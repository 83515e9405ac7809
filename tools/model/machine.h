// machine: the EC2 machines of the modelled page, each of 8 GPUs, as published.
#pragma once

namespace fccl::core::model {

constexpr int kGpus = 8;  // GPUs of a host

// Speeds per direction. Sources: EC2's specification of accelerated computing instances, and NVIDIA's of NVSwitch.
struct Machine {
  const char* name;
  int nics;
  int nic_megabits;
  double nvlink_bandwidth;  // bytes per second that NCCL assumes for a GPU
  bool has_amd_processors;

  double wire_bandwidth() const { return nics * nic_megabits * 1e6 / 8; }
};

// The number of NVLinks of a GPU times the speed that NCCL's src/graph/topo.h assumes for one: SM80_NVLINK_BW 20.0,
// SM90_NVLINK_BW 20.6 GB/s.
inline constexpr Machine kP4d{"p4d.24xlarge", 4, 100'000, 12 * 20.0e9, false};
inline constexpr Machine kP5{"p5.48xlarge", 32, 100'000, 18 * 20.6e9, true};

}  // namespace fccl::core::model
