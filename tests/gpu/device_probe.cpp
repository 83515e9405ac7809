// Opens the GPU before each part.
#include "device_probe.h"

#include "device.h"

namespace fccl::gpu {

int run_probe(int question, const std::vector<Case>& cases, int argc, char** argv) {
  return run_probe({.number = question, .look_for_gpu = open_gpu, .open = open_gpu}, cases, argc, argv);
}

}  // namespace fccl::gpu
