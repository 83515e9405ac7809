// nccl_ring: how long NCCL itself reckons that its ring takes for an AllGather or a ReduceScatter.
#pragma once

#include "model/machine.h"

namespace fccl::model {

struct RingTime {
  const char* protocol;
  double seconds;
};

// By the protocol that NCCL reckons to be fastest. `bytes` of the larger buffer, two hosts or more.
RingTime nccl_ring(const Machine& machine, int hosts, double bytes);

}  // namespace fccl::model
