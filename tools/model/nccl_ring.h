// nccl_ring: the time that NCCL's own model gives its ring for an AllGather or a ReduceScatter.
#pragma once

#include "model/machine.h"

namespace fccl::core::model {

struct RingTime {
  const char* protocol;
  double seconds;
};

// Takes the protocol that NCCL's model finds fastest. `bytes` is the size of the larger buffer. There must be two hosts or
// more.
RingTime nccl_ring(const Machine& machine, int hosts, double bytes);

}  // namespace fccl::core::model
