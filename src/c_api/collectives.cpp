// The C interface: collectives. Checks what is wrong on its face, before anything is announced to the peers.
#include "c_api/c_api.h"
#include "communicator/stream.h"
#include "kernels/reduce.h"
#include "plan/choose.h"

namespace fccl {
namespace {

// What a user's call looks like before it has been checked.
struct UserCall {
  const char* function;
  fcclColl_t collective;
  const void* send;
  void* recv;
  size_t count;
  fcclDataType_t dtype;
  int op = fcclSum;  // fcclRedOp_t, or a handle beyond it
  int root = -1;
};

Result<void> check_shape(const UserCall& call, int rank, int ranks) {
  if (!is_valid(call.dtype)) return fail(fcclInvalidArgument, fmt::format("datatype {} is no fcclDataType_t", int{call.dtype}));
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= ranks))
    return fail(fcclInvalidArgument, fmt::format("root is {}: give 0 <= root < {}", call.root, ranks));
  if (call.count > SIZE_MAX / 2 / size_of(call.dtype) / ranks)
    return fail(fcclInvalidArgument, fmt::format("count {} of {} over {} ranks is more than memory can hold", call.count,
                                                 name_of(call.dtype), ranks));
  if (call.count == 0) return {};
  const Collective& row = row_of(call.collective);
  if (row.gives(rank, call.root) && call.send == nullptr)
    return fail(fcclInvalidArgument, fmt::format("sendbuff is NULL with count {}", call.count));
  if (row.takes(rank, call.root) && call.recv == nullptr)
    return fail(fcclInvalidArgument, fmt::format("recvbuff is NULL with count {}", call.count));
  return {};
}

// Between hosts what has no algorithm is refused first, and alike on all ranks, since what is wrong with its arguments may be
// so on one.
Result<void> check_hosts(const UserCall& call, const Communicator& communicator) {
  const int hosts = communicator.hosts().hosts;
  if (hosts == 1 || plan::has_algorithm(call.collective)) return {};
  return fail(fcclNotImplemented,
              fmt::format("{} between the ranks of {} hosts is not implemented yet in this version of FCCL, only between those "
                          "of one; call it on a communicator of one host (fcclCommSplit), or take the blocks of an AllGather",
                          name_of(call.collective), hosts));
}

// What a call with a block for each pair of ranks needs beyond its shape.
Result<void> check_pairs(const UserCall& call) {
  if (!row_of(call.collective).has_pairs()) return {};
  if (call.count > 0 && call.send != nullptr && call.send == call.recv)
    return fail(fcclInvalidArgument,
                fmt::format("sendbuff and recvbuff are the same with count {}: {} does not work in place, "
                            "since what arrives would replace what has yet to be sent; give it a recvbuff of its own",
                            call.count, name_of(call.collective)));
  return {};
}

struct Operator {
  ReduceOp op;
  Scalar scalar;
  const void* scalar_on_device = nullptr;
};

Result<Operator> operator_of(const UserCall& call, const Communicator& communicator) {
  if (!is_reduction(call.collective)) return Operator{ReduceOp::sum, {}};
  Operator found{ReduceOp::premul_sum, {}};
  if (call.op >= fcclSum && call.op < fcclNumOps) {
    found.op = static_cast<ReduceOp>(call.op);
  } else {
    auto factor = communicator.factor_of(static_cast<fcclRedOp_t>(call.op), call.dtype);
    if (!factor) return fail(std::move(factor).error());
    found.scalar = factor->scalar;
    found.scalar_on_device = factor->on_device;
  }
  if (reduce_kernel(call.dtype, found.op) == nullptr) return fail(fcclInvalidArgument, no_kernel(call.dtype, found.op));
  return found;
}

fcclResult_t run(const UserCall& user, fcclComm_t comm, fcclStream_t stream) {
  if (comm == nullptr) return refuse(user.function, "comm is NULL");
  Communicator& communicator = *comm->communicator;
  if (auto checked = check_hosts(user, communicator); !checked) return report(user.function, checked);
  if (auto checked = check_pairs(user); !checked) return report(user.function, checked);
  if (auto checked = check_shape(user, communicator.rank(), communicator.ranks()); !checked)
    return report(user.function, checked);
  auto found = operator_of(user, communicator);
  if (!found) return report(user.function, found);
  const Call call{{user.collective, user.dtype, found->op, user.root, user.count}, user.send, user.recv, found->scalar};
  if (communicator.device() != nullptr)
    return report(user.function, communicator.run_on_device(call, found->scalar_on_device, stream));
  Stream* const host_stream = stream == nullptr ? nullptr : Stream::find(stream);
  if (host_stream == nullptr && stream != nullptr) [[unlikely]]
    return refuse(
        user.function,
        fmt::format("stream {} is no host stream of this process, but the communicator is of CPU memory: give NULL or "
                    "one that fcclStreamCreate made. For buffers in CUDA memory and a cudaStream_t make a "
                    "communicator with memoryKind = fcclMemoryCuda",
                    stream));
  return report(user.function, communicator.run(call, host_stream));
}

}  // namespace
}  // namespace fccl

extern "C" {

fcclResult_t fcclAllReduce(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclRedOp_t op,
                           fcclComm_t comm, fcclStream_t stream) {
  return fccl::run({__func__, fcclCollAllReduce, sendbuff, recvbuff, count, datatype, op}, comm, stream);
}

fcclResult_t fcclBroadcast(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root,
                           fcclComm_t comm, fcclStream_t stream) {
  return fccl::run({__func__, fcclCollBroadcast, sendbuff, recvbuff, count, datatype, fcclSum, root}, comm, stream);
}

fcclResult_t fcclBcast(void* buff, size_t count, fcclDataType_t datatype, int root, fcclComm_t comm, fcclStream_t stream) {
  return fccl::run({__func__, fcclCollBroadcast, buff, buff, count, datatype, fcclSum, root}, comm, stream);
}

fcclResult_t fcclReduce(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclRedOp_t op, int root,
                        fcclComm_t comm, fcclStream_t stream) {
  return fccl::run({__func__, fcclCollReduce, sendbuff, recvbuff, count, datatype, op, root}, comm, stream);
}

fcclResult_t fcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, fcclDataType_t datatype, fcclComm_t comm,
                           fcclStream_t stream) {
  return fccl::run({__func__, fcclCollAllGather, sendbuff, recvbuff, sendcount, datatype}, comm, stream);
}

fcclResult_t fcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, fcclDataType_t datatype, fcclRedOp_t op,
                               fcclComm_t comm, fcclStream_t stream) {
  return fccl::run({__func__, fcclCollReduceScatter, sendbuff, recvbuff, recvcount, datatype, op}, comm, stream);
}

fcclResult_t fcclGather(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root, fcclComm_t comm,
                        fcclStream_t stream) {
  return fccl::run({__func__, fcclCollGather, sendbuff, recvbuff, count, datatype, fcclSum, root}, comm, stream);
}

fcclResult_t fcclScatter(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root, fcclComm_t comm,
                         fcclStream_t stream) {
  return fccl::run({__func__, fcclCollScatter, sendbuff, recvbuff, count, datatype, fcclSum, root}, comm, stream);
}

fcclResult_t fcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclComm_t comm,
                          fcclStream_t stream) {
  return fccl::run({__func__, fcclCollAlltoAll, sendbuff, recvbuff, count, datatype}, comm, stream);
}

fcclResult_t fcclBarrier(fcclComm_t comm, fcclStream_t stream) {
  return fccl::run({__func__, fcclCollBarrier, nullptr, nullptr, 0, fcclInt8}, comm, stream);
}

}  // extern "C"
