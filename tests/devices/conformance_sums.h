// The conformance suite of GPUs: what DeviceSums tests.
#pragma once

#include <vector>

#include "device/reduction.h"
#include "devices/conformance.h"

namespace fccl::core {

// A sum as a user of the GPU has it; its sources are bits of any kind, NaN and subnormals among them.
struct SumCase {
  static constexpr size_t kElements = 10'007;

  fcclDataType_t dtype = fcclFloat32;
  ReduceOp op = ReduceOp::sum;
  bool widens = false;

  size_t source_bytes() const { return kElements * size_of(dtype); }
  size_t result_bytes() const { return kElements * size_of(widens ? fcclFloat32 : dtype); }
};

// Tests of a GPU for which the library has kernels; of any other they are skipped.
class DeviceSums : public DeviceConformance {
 protected:
  // The GPU's addresses of the sources, of their factors and of the poisoned result.
  struct OnGpu {
    std::vector<const std::byte*> sources, factors;
    std::byte* out = nullptr;
  };

  void SetUp() override;
  // All of them `offset` bytes behind an aligned address.
  OnGpu put(const SumCase& sum, const std::vector<std::vector<std::byte>>& sources, const std::vector<Scalar>& factors,
            size_t offset);
  static Reduction reduction(const SumCase& sum, const OnGpu& there);
  static std::vector<std::byte> by_processor(const SumCase& sum, const std::vector<std::vector<std::byte>>& sources,
                                             const std::vector<Scalar>& factors);
};

}  // namespace fccl::core
