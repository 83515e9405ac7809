// The checks of a user's call, and the call that they let through.
#include "c_api/user_call.h"

#include "kernels/reduce.h"

namespace fccl {
namespace {

Result<void> check_shape(const UserCall& call, int rank, int ranks) {
  if (!is_valid(call.dtype)) return fail(fcclInvalidArgument, fmt::format("datatype {} is no fcclDataType_t", int{call.dtype}));
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= ranks))
    return fail(fcclInvalidArgument, fmt::format("root is {}: give 0 <= root < {}", call.root, ranks));
  if (call.uneven == nullptr && call.count > SIZE_MAX / 2 / size_of(call.dtype) / ranks)
    return fail(fcclInvalidArgument, fmt::format("count {} of {} over {} ranks is more than memory can hold", call.count,
                                                 name_of(call.dtype), ranks));
  const Collective& row = row_of(call.collective);
  const size_t size = size_of(call.dtype);
  const size_t sent = call.uneven != nullptr ? call.uneven->input.layout().total() / size : call.count;
  const size_t received = call.uneven != nullptr ? call.uneven->output.layout().total() / size : call.count;
  if (sent > 0 && row.gives(rank, call.root) && call.send == nullptr)
    return fail(fcclInvalidArgument, fmt::format("sendbuff is NULL with count {}", sent));
  if (received > 0 && row.takes(rank, call.root) && call.recv == nullptr)
    return fail(fcclInvalidArgument, fmt::format("recvbuff is NULL with count {}", received));
  return {};
}

// What a call with a block for each pair of ranks needs beyond that. Between hosts it is refused first, and alike on all ranks,
// since what is wrong with its arguments may be so on one.
Result<void> check_pairs(const UserCall& call, const Communicator& communicator) {
  const Collective& row = row_of(call.collective);
  if (!row.has_pairs() && !row.uneven) return {};
  if (const int hosts = communicator.hosts().hosts; hosts > 1)
    return fail(
        fcclNotImplemented,
        fmt::format("{} between the ranks of {} hosts is not implemented yet in this version of FCCL, only between those "
                    "of one; call it on a communicator of one host (fcclCommSplit), or take the blocks of an AllGather",
                    name_of(call.collective), hosts));
  if (!row.has_pairs()) return {};
  const size_t count = call.uneven != nullptr ? call.uneven->output.layout().total() / size_of(call.dtype) : call.count;
  if (count > 0 && call.send != nullptr && call.send == call.recv)
    return fail(fcclInvalidArgument,
                fmt::format("sendbuff and recvbuff are the same with count {}: {} does not work in place, "
                            "since what arrives would replace what has yet to be sent; give it a recvbuff of its own",
                            count, name_of(call.collective)));
  return {};
}

struct Operator {
  ReduceOp op;
  Scalar scalar;
};

Result<Operator> operator_of(const UserCall& call, const Communicator& communicator) {
  if (!is_reduction(call.collective)) return Operator{ReduceOp::sum, {}};
  Operator found{ReduceOp::premul_sum, {}};
  if (call.op >= fcclSum && call.op < fcclNumOps) {
    found.op = static_cast<ReduceOp>(call.op);
  } else {
    auto factor = communicator.factor_of(static_cast<fcclRedOp_t>(call.op), call.dtype);
    if (!factor) return fail(std::move(factor).error());
    found.scalar = *factor;
  }
  if (reduce_kernel(call.dtype, found.op) == nullptr) return fail(fcclInvalidArgument, no_kernel(call.dtype, found.op));
  return found;
}

}  // namespace

fcclResult_t issue(const UserCall& user, fcclComm_t comm, fcclStream_t stream) {
  if (comm == nullptr) return refuse(user.function, "comm is NULL");
  Communicator& communicator = *comm->communicator;
  if (auto checked = check_pairs(user, communicator); !checked) return report(user.function, checked);
  if (auto checked = check_shape(user, communicator.rank(), communicator.ranks()); !checked)
    return report(user.function, checked);
  auto found = operator_of(user, communicator);
  if (!found) return report(user.function, found);
  const Call call{{user.collective, user.dtype, found->op, user.root, user.count, Issuer::user, user.counts},
                  user.send,
                  user.recv,
                  found->scalar,
                  user.uneven};
  return report(user.function, communicator.run(call, static_cast<Stream*>(stream)));
}

}  // namespace fccl
