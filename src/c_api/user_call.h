// UserCall: a collective as the user called it, and its way from there to the communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fccl/fccl.h"

namespace fccl::core {

struct UnevenBlocks;

// Holds a user's call before it has been checked. A value of the C function that makes it.
struct UserCall {
  const char* function;
  fcclColl_t collective;
  const void* send;
  void* recv;
  size_t count;  // for blocks with counts of their own, their sum
  fcclDataType_t dtype;
  int op = fcclSum;  // fcclRedOp_t, or a handle made by fcclRedOpCreatePreMulSum
  int root = -1;
  uint64_t counts = 0;                                    // hash_of the counts that all ranks must have in common
  const UnevenBlocks* uneven = nullptr;                   // already checked
  std::optional<fcclDataType_t> recvtype = std::nullopt;  // type of the results where it differs from dtype, the type of `send`
};

// Refuses a call that is wrong on its face before any peer hears of it, then runs it.
fcclResult_t issue(const UserCall& user, fcclComm_t comm, fcclStream_t stream);

}  // namespace fccl::core
