// The C interface: collectives of equal counts.
#include "c_api/user_call.h"

extern "C" {

fcclResult_t fcclAllReduce(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclRedOp_t op,
                           fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollAllReduce, sendbuff, recvbuff, count, datatype, op}, comm, stream);
}

fcclResult_t fcclBroadcast(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root,
                           fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollBroadcast, sendbuff, recvbuff, count, datatype, fcclSum, root}, comm, stream);
}

fcclResult_t fcclBcast(void* buff, size_t count, fcclDataType_t datatype, int root, fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollBroadcast, buff, buff, count, datatype, fcclSum, root}, comm, stream);
}

fcclResult_t fcclReduce(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclRedOp_t op, int root,
                        fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollReduce, sendbuff, recvbuff, count, datatype, op, root}, comm, stream);
}

fcclResult_t fcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, fcclDataType_t datatype, fcclComm_t comm,
                           fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollAllGather, sendbuff, recvbuff, sendcount, datatype}, comm, stream);
}

fcclResult_t fcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, fcclDataType_t datatype, fcclRedOp_t op,
                               fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollReduceScatter, sendbuff, recvbuff, recvcount, datatype, op}, comm, stream);
}

fcclResult_t fcclGather(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root, fcclComm_t comm,
                        fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollGather, sendbuff, recvbuff, count, datatype, fcclSum, root}, comm, stream);
}

fcclResult_t fcclScatter(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root, fcclComm_t comm,
                         fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollScatter, sendbuff, recvbuff, count, datatype, fcclSum, root}, comm, stream);
}

fcclResult_t fcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclComm_t comm,
                          fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollAlltoAll, sendbuff, recvbuff, count, datatype}, comm, stream);
}

fcclResult_t fcclBarrier(fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::issue({__func__, fcclCollBarrier, nullptr, nullptr, 0, fcclInt8}, comm, stream);
}

}  // extern "C"
