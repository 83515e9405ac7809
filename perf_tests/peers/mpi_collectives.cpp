// Maps one measured call to one call of MPI, with nothing in between that MPI's users would not have.
#include "peers/mpi_collectives.h"

#include <mpi.h>

#include <climits>
#include <cstring>

#include "fccl/fccl.h"

namespace fccl::perf {
namespace {

// Returns null if MPI has no such number: fp8, bool, and the 16-bit floats, which it can only carry.
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

// Returns a type of the same size, for data that is only carried.
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

struct World {
  int rank = 0;
  int ranks = 1;
};

World find_world() {
  World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
  return world;
}

World world() {
  static const World found = find_world();
  return found;
}

// True if `block` is block `rank` of `blocks`.
bool is_block(const void* block, const void* blocks, const FcclPeerCall& call, MPI_Datatype type) {
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  const std::size_t offset = static_cast<std::size_t>(world().rank) * call.count * static_cast<std::size_t>(bytes);
  return block == static_cast<const char*>(blocks) + offset;
}

// Returns the address that MPI reads: MPI_IN_PLACE if the call is in place on this rank. In a rooted call only the root may
// pass it.
const void* source_of(const FcclPeerCall& call, MPI_Datatype type) {
  bool in_place = call.send == call.recv;
  if (call.collective == fcclCollAllGather || call.collective == fcclCollGather)
    in_place = is_block(call.send, call.recv, call, type);
  if (call.collective == fcclCollReduce || call.collective == fcclCollGather) in_place &= world().rank == call.root;
  return in_place ? MPI_IN_PLACE : call.send;
}

int send_and_receive(const FcclPeerCall& call, int count, MPI_Datatype type) {
  const int ranks = world().ranks;
  return MPI_Sendrecv(call.send, count, type, (world().rank + 1) % ranks, 0, call.recv, count, type,
                      (world().rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// MPI_Bcast has one buffer. Out of place the root's call therefore copies to the other one, as FCCL's does.
int broadcast(const FcclPeerCall& call, int count, MPI_Datatype type) {
  if (world().rank == call.root && call.send != call.recv) {
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    std::memcpy(call.recv, call.send, call.count * static_cast<std::size_t>(bytes));
  }
  return MPI_Bcast(call.recv, count, type, call.root, MPI_COMM_WORLD);
}

int scatter(const FcclPeerCall& call, int count, MPI_Datatype type) {
  const bool in_place = world().rank == call.root && is_block(call.recv, call.send, call, type);
  return MPI_Scatter(call.send, count, type, in_place ? MPI_IN_PLACE : call.recv, count, type, call.root, MPI_COMM_WORLD);
}

}  // namespace

bool mpi_supports(int collective, int datatype, int op) {
  switch (collective) {
    case fcclCollAllGather:
    case fcclCollAlltoAll:
    case fcclCollBroadcast:
    case fcclCollGather:
    case fcclCollScatter:
    case fcclCollSend:
      return true;
    case fcclCollReduceScatter:
    case fcclCollAllReduce:
    case fcclCollReduce:
      return number_of(datatype) != MPI_DATATYPE_NULL && op_of(op) != MPI_OP_NULL;
    default:
      return false;
  }
}

int mpi_call(const FcclPeerCall* call) {
  if (call->count > INT_MAX) return MPI_ERR_COUNT;
  const int count = static_cast<int>(call->count);
  const MPI_Datatype type = carrier_of(call->datatype);
  const void* send = source_of(*call, type);
  switch (call->collective) {
    case fcclCollAllGather:
      return MPI_Allgather(send, count, type, call->recv, count, type, MPI_COMM_WORLD);
    case fcclCollAlltoAll:
      return MPI_Alltoall(send, count, type, call->recv, count, type, MPI_COMM_WORLD);
    case fcclCollSend:
      return send_and_receive(*call, count, type);
    case fcclCollBroadcast:
      return broadcast(*call, count, type);
    case fcclCollGather:
      return MPI_Gather(send, count, type, call->recv, count, type, call->root, MPI_COMM_WORLD);
    case fcclCollScatter:
      return scatter(*call, count, type);
    case fcclCollReduce:
      return MPI_Reduce(send, call->recv, count, type, op_of(call->op), call->root, MPI_COMM_WORLD);
    case fcclCollReduceScatter:
      return MPI_Reduce_scatter_block(send, call->recv, count, type, op_of(call->op), MPI_COMM_WORLD);
    case fcclCollAllReduce:
      return MPI_Allreduce(send, call->recv, count, type, op_of(call->op), MPI_COMM_WORLD);
    default:
      return MPI_ERR_OTHER;
  }
}

}  // namespace fccl::perf
