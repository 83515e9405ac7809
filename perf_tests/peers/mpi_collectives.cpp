// Maps one measured call to one call of MPI, with nothing in between that MPI's users would not have.
#include "peers/mpi_collectives.h"

#include <mpi.h>

#include <climits>

#include "fccl/fccl.h"

namespace fccl::perf {
namespace {

// Null where MPI has no such number. fp8, bool, and the 16-bit floats it can only carry.
MPI_Datatype number_of(int datatype) {
  switch (datatype) {
    case fcclInt8:
      return MPI_INT8_T;
    case fcclUint8:
      return MPI_UINT8_T;
    case fcclInt16:
      return MPI_INT16_T;
    case fcclUint16:
      return MPI_UINT16_T;
    case fcclInt32:
      return MPI_INT32_T;
    case fcclUint32:
      return MPI_UINT32_T;
    case fcclInt64:
      return MPI_INT64_T;
    case fcclUint64:
      return MPI_UINT64_T;
    case fcclFloat32:
      return MPI_FLOAT;
    case fcclFloat64:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;
  }
}

// A type of the same size, for what is only carried.
MPI_Datatype carrier_of(int datatype) {
  if (number_of(datatype) != MPI_DATATYPE_NULL) return number_of(datatype);
  return datatype == fcclFloat16 || datatype == fcclBfloat16 ? MPI_UINT16_T : MPI_UINT8_T;
}

MPI_Op op_of(int op) {
  switch (op) {
    case fcclSum:
      return MPI_SUM;
    case fcclProd:
      return MPI_PROD;
    case fcclMin:
      return MPI_MIN;
    case fcclMax:
      return MPI_MAX;
    default:
      return MPI_OP_NULL;
  }
}

// Whether `send` is where `call` is in place on this rank.
bool in_place(const FcclPeerCall& call, MPI_Datatype type) {
  if (call.collective != fcclCollAllGather) return call.send == call.recv;
  int rank = 0;
  int bytes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_size(type, &bytes);
  const std::size_t offset = static_cast<std::size_t>(rank) * call.count * static_cast<std::size_t>(bytes);
  return call.send == static_cast<const char*>(call.recv) + offset;
}

// The ranks that this one sends to and receives from.
struct Neighbours {
  int next = 0;
  int previous = 0;
};

Neighbours find_neighbours() {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return {(rank + 1) % ranks, (rank + ranks - 1) % ranks};
}

int send_and_receive(const FcclPeerCall& call, int count, MPI_Datatype type) {
  static const Neighbours kNeighbours = find_neighbours();
  return MPI_Sendrecv(call.send, count, type, kNeighbours.next, 0, call.recv, count, type, kNeighbours.previous, 0,
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

}  // namespace

bool mpi_supports(int collective, int datatype, int op) {
  if (collective == fcclCollAllGather || collective == fcclCollAlltoAll || collective == fcclCollSend) return true;
  if (collective != fcclCollReduceScatter && collective != fcclCollAllReduce) return false;
  return number_of(datatype) != MPI_DATATYPE_NULL && op_of(op) != MPI_OP_NULL;
}

int mpi_call(const FcclPeerCall* call) {
  if (call->count > INT_MAX) return MPI_ERR_COUNT;
  const int count = static_cast<int>(call->count);
  const MPI_Datatype type = carrier_of(call->datatype);
  const void* send = in_place(*call, type) ? MPI_IN_PLACE : call->send;
  switch (call->collective) {
    case fcclCollAllGather:
      return MPI_Allgather(send, count, type, call->recv, count, type, MPI_COMM_WORLD);
    case fcclCollAlltoAll:
      return MPI_Alltoall(send, count, type, call->recv, count, type, MPI_COMM_WORLD);
    case fcclCollSend:
      return send_and_receive(*call, count, type);
    case fcclCollReduceScatter:
      return MPI_Reduce_scatter_block(send, call->recv, count, type, op_of(call->op), MPI_COMM_WORLD);
    case fcclCollAllReduce:
      return MPI_Allreduce(send, call->recv, count, type, op_of(call->op), MPI_COMM_WORLD);
    default:
      return MPI_ERR_OTHER;
  }
}

}  // namespace fccl::perf
