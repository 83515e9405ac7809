// Refuses to open a device, since FCCL was built without CUDA.
#include "device/device.h"

namespace fccl::core {

Result<std::shared_ptr<Device>> open_device(int /*ordinal*/) {
  return fail(fcclSystemError,
              "cannot use a GPU: this FCCL was built without CUDA; build it where cuda.h is found (FCCL_CUDA=ON says where it "
              "is not), or use CPU memory");
}

int current_device() { return -1; }

}  // namespace fccl::core
