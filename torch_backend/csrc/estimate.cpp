// Holds this thread's group open, and simulates its end.
#include "estimate.h"

#include "errors.h"
#include "fccl/fccl.h"

namespace fccl::torch {

void start_estimate() { check(fcclGroupStart(), "fccl:estimate"); }

float end_estimate() {
  fcclSimInfo_t estimate = FCCL_SIM_INFO_INITIALIZER;
  check(fcclGroupSimulateEnd(&estimate), "fccl:estimate");
  return estimate.estimatedTime;
}

}  // namespace fccl::torch
