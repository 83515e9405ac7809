// Operators: the pre-multiplied sums that a user has made for one communicator.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace fccl::core {

// A communicator owns it. One thread at a time.
class Operators {
 public:
  // The factor of a pre-multiplied sum: its value, or where it lies on the device.
  struct Factor {
    fcclDataType_t dtype;
    Scalar scalar;
    const void* on_device = nullptr;
  };
  // Returns the handle of a new operator.
  fcclRedOp_t create(const Factor& factor);
  Result<void> destroy(fcclRedOp_t op);
  // Returns the factor behind an operator handle made for `dtype`.
  Result<Factor> factor_of(fcclRedOp_t op, fcclDataType_t dtype) const;

 private:
  Result<size_t> find(fcclRedOp_t op) const;

  std::vector<std::optional<Factor>> factors_;
};

}  // namespace fccl::core
