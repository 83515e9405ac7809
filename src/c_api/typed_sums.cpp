// The C interface: reductions whose results have another type than their inputs.
#include "c_api/user_call.h"

extern "C" {

fcclResult_t fcclAllReduceTyped(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t sendtype,
                                fcclDataType_t recvtype, fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({.function = __func__,
                            .collective = fcclCollAllReduce,
                            .send = sendbuff,
                            .recv = recvbuff,
                            .count = count,
                            .dtype = sendtype,
                            .op = op,
                            .recvtype = recvtype},
                           comm, stream);
}

fcclResult_t fcclReduceTyped(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t sendtype,
                             fcclDataType_t recvtype, fcclRedOp_t op, int root, fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({.function = __func__,
                            .collective = fcclCollReduce,
                            .send = sendbuff,
                            .recv = recvbuff,
                            .count = count,
                            .dtype = sendtype,
                            .op = op,
                            .root = root,
                            .recvtype = recvtype},
                           comm, stream);
}

fcclResult_t fcclReduceScatterTyped(const void* sendbuff, void* recvbuff, size_t recvcount, fcclDataType_t sendtype,
                                    fcclDataType_t recvtype, fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({.function = __func__,
                            .collective = fcclCollReduceScatter,
                            .send = sendbuff,
                            .recv = recvbuff,
                            .count = recvcount,
                            .dtype = sendtype,
                            .op = op,
                            .recvtype = recvtype},
                           comm, stream);
}

}  // extern "C"
