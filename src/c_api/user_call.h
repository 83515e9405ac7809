// UserCall: a collective as the user called it, and its way from there to the communicator.
#pragma once

#include <optional>

#include "c_api/c_api.h"

namespace fccl {

// What a user's call looks like before it has been checked. A value of the function of the C interface that makes it.
struct UserCall {
  const char* function;
  fcclColl_t collective;
  const void* send;
  void* recv;
  size_t count;  // of blocks with counts of their own their sum
  fcclDataType_t dtype;
  int op = fcclSum;  // fcclRedOp_t, or a handle beyond it
  int root = -1;
  uint64_t counts = 0;                                    // hash_of those that all ranks must have in common
  const UnevenBlocks* uneven = nullptr;                   // already checked
  std::optional<fcclDataType_t> recvtype = std::nullopt;  // of a call that names one beside dtype, which is then that of `send`
};

// Checks what is wrong on its face, before anything is announced to the peers, then runs the call.
fcclResult_t issue(const UserCall& user, fcclComm_t comm, fcclStream_t stream);

}  // namespace fccl
