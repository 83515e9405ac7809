// The exit statuses of a perf binary; the numbers are those of nccl-tests.
#pragma once

#include "fccl/fccl.h"

namespace fccl::perf {

enum class ExitCode : int {
  success = 0,
  internal = 1,
  cuda = 2,
  fccl = 3,
  timeout = 4,
  not_implemented = 5,
  usage = 6,
  wrong_data = 7,
  bad_sizes = 255,
};

constexpr ExitCode exit_code_of(fcclResult_t result) {
  switch (result) {
    case fcclSuccess:
      return ExitCode::success;
    case fcclUnhandledCudaError:
      return ExitCode::cuda;
    case fcclTimeout:
      return ExitCode::timeout;
    case fcclNotImplemented:
      return ExitCode::not_implemented;
    default:
      return ExitCode::fccl;
  }
}

}  // namespace fccl::perf
