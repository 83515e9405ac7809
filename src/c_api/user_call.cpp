// Checks a user's call, and turns it into a call of the communicator.
#include "c_api/user_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "c_api/handle.h"
#include "c_api/report.h"
#include "c_api/streams.h"
#include "communicator/operators.h"
#include "kernels/reduce.h"
#include "operations/host_function.h"

namespace fccl::core {
namespace {

bool is_widened(const UserCall& call) { return call.recvtype && *call.recvtype != call.dtype; }

Result<void> check_types(const UserCall& call) {
  if (!is_valid(call.dtype))
    return fail(fcclInvalidArgument,
                fmt::format("{} {} is not an fcclDataType_t", call.recvtype ? "sendtype" : "datatype", int{call.dtype}));
  if (!is_widened(call)) return {};
  if (!is_valid(*call.recvtype))
    return fail(fcclInvalidArgument, fmt::format("recvtype {} is not an fcclDataType_t", int{*call.recvtype}));
  if (*call.recvtype == fcclFloat32 && float32_kernel(call.dtype, ReduceOp::sum) != nullptr) return {};
  return fail(fcclInvalidArgument,
              fmt::format("there is no {} of {} into {}: recvtype is sendtype, or float32 where sendtype is float16, bfloat16, "
                          "float8e4m3 or float8e5m2",
                          name_of(call.collective), name_of(call.dtype), name_of(*call.recvtype)));
}

// Takes a call of a rank that both gives and takes, with blocks of one size.
bool is_in_place(const UserCall& call, int rank, int ranks) {
  const Collective& row = row_of(call.collective);
  if (is_widened(call) || row.has_pairs()) return false;
  const size_t before = rank * call.count * size_of(call.dtype), sent = row.input_blocks(ranks),
               received = row.output_blocks(ranks);
  return reinterpret_cast<uintptr_t>(call.send) + (sent > received ? before : 0) ==
         reinterpret_cast<uintptr_t>(call.recv) + (received > sent ? before : 0);
}

std::string how_in_place(const UserCall& call, int ranks) {
  const Collective& row = row_of(call.collective);
  if (is_widened(call))
    return fmt::format("{} into another type does not work in place, give it a recvbuff of its own", name_of(call.collective));
  if (row.has_pairs()) return fmt::format("{} does not work in place, give it a recvbuff of its own", name_of(call.collective));
  const size_t sent = row.input_blocks(ranks), received = row.output_blocks(ranks);
  return fmt::format("give it a recvbuff of its own, or call {} in place, with {}", name_of(call.collective),
                     sent == received  ? "recvbuff == sendbuff"
                     : sent < received ? "sendbuff == recvbuff + rank * count"
                                       : "recvbuff == sendbuff + rank * count");
}

// Refuses overlaps except those of a call in place, on a rank that has results: other ranks may still read what such a result
// would overwrite.
Result<void> check_apart(const UserCall& call, int rank, int ranks) {
  const Collective& row = row_of(call.collective);
  if (!row.gives(rank, call.root) || !row.takes(rank, call.root)) return {};
  const fcclDataType_t results = call.recvtype.value_or(call.dtype);
  const size_t sent = call.count * row.input_blocks(ranks) * size_of(call.dtype);
  const size_t received = call.count * row.output_blocks(ranks) * size_of(results);
  const auto send = reinterpret_cast<uintptr_t>(call.send), recv = reinterpret_cast<uintptr_t>(call.recv);
  if (sent == 0 || send + sent <= recv || recv + received <= send || is_in_place(call, rank, ranks)) return {};
  return fail(MessageKind::buffers_overlap,
              fmt::format("sendbuff and recvbuff overlap: the {} bytes of {} and the {} bytes of {} begin {} bytes apart; {}",
                          sent, name_of(call.dtype), received, name_of(results), send < recv ? recv - send : send - recv,
                          how_in_place(call, ranks)));
}

struct Bytes {
  uintptr_t begin = UINTPTR_MAX, end = 0;

  bool overlap(const Bytes& other) const { return begin < other.end && other.begin < end; }
};

Bytes block_of(const void* buffer, const Layout& layout, int block) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(buffer) + layout.offset(block);
  return {begin, begin + layout.bytes(block)};
}

// Returns the bytes from the first non-empty block to the end of the last one.
Bytes extent_of(const void* buffer, const Layout& layout, int blocks) {
  Bytes extent;
  for (int i = 0; i < blocks; ++i) {
    if (layout.bytes(i) == 0) continue;
    const Bytes block = block_of(buffer, layout, i);
    extent = {std::min(extent.begin, block.begin), std::max(extent.end, block.end)};
  }
  return extent;
}

// Does so for blocks with counts of their own, where only a rank's own block may lie in place.
Result<void> check_blocks_apart(const UserCall& call, int rank, int ranks) {
  const Collective& row = row_of(call.collective);
  const Layout input = call.uneven->input.layout(), output = call.uneven->output.layout();
  const int sent = static_cast<int>(row.input_blocks(ranks)), received = static_cast<int>(row.output_blocks(ranks));
  if (!extent_of(call.send, input, sent).overlap(extent_of(call.recv, output, received))) return {};
  for (int i = 0; i < sent; ++i)
    for (int j = 0; j < received; ++j) {
      const Bytes from = block_of(call.send, input, i), to = block_of(call.recv, output, j);
      if (input.bytes(i) == 0 || output.bytes(j) == 0 || !from.overlap(to)) continue;
      const bool is_own = !row.has_pairs() && (sent == 1 || i == rank) && (received == 1 || j == rank);
      if (is_own && from.begin == to.begin) continue;
      return fail(
          MessageKind::buffers_overlap,
          fmt::format("sendbuff and recvbuff overlap: block {} of sendbuff ({} bytes) and block {} of recvbuff ({} bytes) "
                      "begin {} bytes apart; {}",
                      i, input.bytes(i), j, output.bytes(j),
                      from.begin < to.begin ? to.begin - from.begin : from.begin - to.begin,
                      row.has_pairs() ? "AlltoAllV does not work in place, give it a recvbuff of its own"
                                      : "only the rank's own block may lie in both, at the same place"));
    }
  return {};
}

Result<void> check_shape(const UserCall& call, int rank, int ranks) {
  FCCL_TRY(check_types(call));
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= ranks))
    return fail(fcclInvalidArgument, fmt::format("root is {}: give 0 <= root < {}", call.root, ranks));
  if (call.uneven == nullptr && call.count > SIZE_MAX / 2 / size_of(call.recvtype.value_or(call.dtype)) / ranks)
    return fail(fcclInvalidArgument, fmt::format("count {} of {} over {} ranks is more than memory can hold", call.count,
                                                 name_of(call.dtype), ranks));
  const Collective& row = row_of(call.collective);
  const size_t size = size_of(call.dtype);
  const size_t sent = call.uneven != nullptr ? call.uneven->input.layout().total() / size : call.count;
  const size_t received = call.uneven != nullptr ? call.uneven->output.layout().total() / size : call.count;
  if (sent > 0 && row.gives(rank, call.root) && call.send == nullptr)
    return fail(MessageKind::null_buffer, fmt::format("sendbuff is NULL with count {}", sent));
  if (received > 0 && row.takes(rank, call.root) && call.recv == nullptr)
    return fail(MessageKind::null_buffer, fmt::format("recvbuff is NULL with count {}", received));
  return call.uneven != nullptr ? check_blocks_apart(call, rank, ranks) : check_apart(call, rank, ranks);
}

// Checks for a missing algorithm between hosts first: that answer is the same on all ranks, but other argument errors may occur
// on one rank only.
Result<void> check_hosts(const UserCall& call, const Communicator& communicator) {
  if (communicator.carries(call.collective)) return {};
  return fail(fcclNotImplemented,
              fmt::format("{} between the ranks of {} hosts is not implemented yet in this version of FCCL, only between those "
                          "of one; call it on a communicator of one host (fcclCommSplit), or take the blocks of an AllGather",
                          name_of(call.collective), communicator.hosts().hosts));
}

// Checks calls with a block for each pair of ranks, beyond their shape.
Result<void> check_pairs(const UserCall& call) {
  if (!row_of(call.collective).has_pairs()) return {};
  const size_t count = call.uneven != nullptr ? call.uneven->output.layout().total() / size_of(call.dtype) : call.count;
  if (count > 0 && call.send != nullptr && call.send == call.recv)
    return fail(MessageKind::buffers_overlap,
                fmt::format("sendbuff and recvbuff are the same with count {}: {} does not work in place, "
                            "since what arrives would replace what has yet to be sent; give it a recvbuff of its own",
                            count, name_of(call.collective)));
  return {};
}

struct Operator {
  ReduceOp op;
  Scalar scalar;
  const void* scalar_on_device = nullptr;
};

Result<Operator> operator_of(const UserCall& call, const Operators& operators) {
  if (!is_reduction(call.collective)) return Operator{ReduceOp::sum, {}};
  Operator found{ReduceOp::premul_sum, {}};
  if (call.op >= fcclSum && call.op < fcclNumOps) {
    found.op = static_cast<ReduceOp>(call.op);
  } else {
    FCCL_TRY_ASSIGN(auto factor, operators.factor_of(static_cast<fcclRedOp_t>(call.op), call.dtype));
    found.scalar = factor.scalar;
    found.scalar_on_device = factor.on_device;
  }
  if (reduce_kernel(call.dtype, found.op) == nullptr) return fail(fcclInvalidArgument, no_kernel(call.dtype, found.op));
  return found;
}

}  // namespace

fcclResult_t issue(const UserCall& user, fcclComm_t comm, fcclStream_t stream) {
  if (comm == nullptr) return refuse(user.function, "comm is NULL");
  if (const auto free = check_free(comm); !free) [[unlikely]]
    return report(user.function, free);
  Communicator& communicator = *comm->communicator;
  if (auto checked = check_hosts(user, communicator); !checked) return report(user.function, checked);
  if (auto checked = check_pairs(user); !checked) return report(user.function, checked);
  if (auto checked = check_shape(user, communicator.rank(), communicator.ranks()); !checked)
    return report(user.function, checked);
  auto found = operator_of(user, communicator.operators());
  if (!found) return report(user.function, found);
  const Signature signature{.collective = user.collective,
                            .dtype = user.dtype,
                            .op = found->op,
                            .root = user.root,
                            .count = user.count,
                            .counts = user.counts,
                            .widens = is_widened(user)};
  const Call call{signature, user.send, user.recv, found->scalar, user.uneven};
  if (communicator.device() != nullptr)
    return report(user.function, communicator.run_on_device(call, {stream, found->scalar_on_device}));
  const auto host_stream = host_stream_of(stream);
  if (!host_stream) return report(user.function, host_stream);
  if (*host_stream == nullptr && is_in_host_function()) [[unlikely]]
    return refuse_in_host_function(user.function);
  return report(user.function, communicator.run(call, *host_stream));
}

}  // namespace fccl::core
