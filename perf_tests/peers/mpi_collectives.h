// MPI's collectives and sends around a ring, called with FCCL's names of types and operators.
#pragma once

#include "launch/launcher.h"

namespace fccl::perf {

bool mpi_supports(int collective, int datatype, int op);
int mpi_call(const FcclPeerCall* call);

}  // namespace fccl::perf
