// The C interface: collectives whose blocks have counts of their own.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "c_api/handle.h"
#include "c_api/report.h"
#include "c_api/user_call.h"

namespace fccl::core {
namespace {

// The arrays that a user gives for one buffer, with their names in the C interface.
struct UserCounts {
  const char* name;
  const size_t* counts;
  const char* displs_name;
  const size_t* displs;  // null: the blocks follow one another
};

// Bounds counts so that neither their sum nor an offset in bytes wraps.
size_t most_elements(fcclDataType_t dtype) { return SIZE_MAX / 2 / size_of(dtype); }

// Checks only what reading the arrays needs; issue() checks the rest, as for every other call.
Result<void> check_arrays(const UserCounts& user, fcclDataType_t dtype, fcclComm_t comm) {
  if (comm == nullptr) return fail(fcclInvalidArgument, "comm is NULL");
  FCCL_TRY(check_free(comm));
  if (!is_valid(dtype)) return fail(fcclInvalidArgument, fmt::format("datatype {} is not an fcclDataType_t", int{dtype}));
  if (user.counts != nullptr) return {};
  return fail(fcclInvalidArgument,
              fmt::format("{} is NULL: give a count for each of the {} ranks, zeros where a block is empty", user.name,
                          comm->communicator->ranks()));
}

// Fills the communicator's ranges. An empty block is placed at offset 0, whatever its displacement.
Result<void> fill_ranges(const UserCounts& user, fcclDataType_t dtype, fcclComm_t comm) {
  const size_t size = size_of(dtype), most = most_elements(dtype);
  std::vector<ByteRange>& ranges = comm->ranges;
  ranges.assign(static_cast<size_t>(comm->communicator->ranks()), ByteRange{});
  size_t sum = 0;
  for (size_t rank = 0; rank < ranges.size(); ++rank) {
    const size_t count = user.counts[rank];
    const size_t begin = user.displs != nullptr ? user.displs[rank] : sum;
    if (count > most - sum)
      return fail(fcclInvalidArgument, fmt::format("{}[{}] is {}: {} of so many {} is more than memory can hold", user.name,
                                                   rank, count, user.name, name_of(dtype)));
    if (count > 0 && begin > most - count)
      return fail(fcclInvalidArgument, fmt::format("{}[{}] is {} with {}[{}] = {} of {}: no memory reaches that far",
                                                   user.displs_name, rank, begin, user.name, rank, count, name_of(dtype)));
    sum += count;
    if (count > 0) ranges[rank] = {begin * size, count * size};
  }
  return {};
}

bool overlap(const ByteRange& a, const ByteRange& b) {
  return a.bytes > 0 && b.bytes > 0 && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// Refuses overlapping blocks in the buffer that is written. Blocks mostly lie in the order of ranks, and one look at each will
// do.
Result<void> check_apart(const UserCounts& user, fcclDataType_t dtype, std::span<const ByteRange> ranges) {
  size_t end = 0;
  const auto is_behind = [&](const ByteRange& range) {
    const bool behind = range.bytes == 0 || range.offset >= end;
    end = std::max(end, range.offset + range.bytes);
    return behind;
  };
  if (std::ranges::all_of(ranges, is_behind)) return {};
  std::vector<size_t> order;
  for (size_t rank = 0; rank < ranges.size(); ++rank)
    if (ranges[rank].bytes > 0) order.push_back(rank);
  std::ranges::stable_sort(order, {}, [&](size_t rank) { return ranges[rank].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const size_t a = std::min(order[i - 1], order[i]), b = std::max(order[i - 1], order[i]);
    if (!overlap(ranges[a], ranges[b])) continue;
    const size_t size = size_of(dtype);
    return fail(
        MessageKind::blocks_overlap,
        fmt::format("blocks {} and {} of recvbuff overlap: {} elements at {} and {} at {}; what lands there would depend "
                    "on which comes last. Change {} or {}",
                    a, b, ranges[a].bytes / size, ranges[a].offset / size, ranges[b].bytes / size, ranges[b].offset / size,
                    user.displs_name, user.name));
  }
  return {};
}

// Checks the arrays of a buffer with a block per rank, and makes its layout of them.
Result<void> set(UnevenBuffer& buffer, const UserCounts& user, fcclDataType_t dtype, fcclComm_t comm, bool is_written) {
  FCCL_TRY(fill_ranges(user, dtype, comm));
  if (is_written) FCCL_TRY(check_apart(user, dtype, comm->ranges));
  buffer.set(comm->ranges);
  return {};
}

std::span<const size_t> of_all_ranks(const size_t* counts, fcclComm_t comm) {
  return {counts, static_cast<size_t>(comm->communicator->ranks())};
}

Result<void> check_own_count(size_t sendcount, const size_t* recvcounts, int rank) {
  if (sendcount == recvcounts[rank]) return {};
  return fail(fcclInvalidArgument,
              fmt::format("sendcount is {} and recvcounts[{}] is {} on rank {}: what a rank sends is its block "
                          "of every recvbuff, so they must be equal",
                          sendcount, rank, recvcounts[rank], rank));
}

Result<void> all_gather_v(UserCall& call, const UserCounts& received, size_t sendcount, fcclComm_t comm) {
  FCCL_TRY(check_arrays(received, call.dtype, comm));
  FCCL_TRY(check_own_count(sendcount, received.counts, comm->communicator->rank()));
  FCCL_TRY(set(comm->blocks.output, received, call.dtype, comm, true));
  comm->blocks.input.set(sendcount * size_of(call.dtype));
  call.count = comm->blocks.output.layout().total() / size_of(call.dtype);
  call.counts = hash_of(of_all_ranks(received.counts, comm));
  call.uneven = &comm->blocks;
  return {};
}

Result<void> reduce_scatter_v(UserCall& call, const UserCounts& received, fcclComm_t comm) {
  FCCL_TRY(check_arrays(received, call.dtype, comm));
  FCCL_TRY(set(comm->blocks.input, received, call.dtype, comm, false));
  comm->blocks.output.set(comm->blocks.input.layout().bytes(comm->communicator->rank()));
  call.count = comm->blocks.input.layout().total() / size_of(call.dtype);
  call.counts = hash_of(of_all_ranks(received.counts, comm));
  call.uneven = &comm->blocks;
  return {};
}

// A rank's block for itself concerns no peer, so its two counts are compared here.
Result<void> all_to_all_v(UserCall& call, const UserCounts& sent, const UserCounts& received, fcclComm_t comm) {
  FCCL_TRY(check_arrays(sent, call.dtype, comm));
  FCCL_TRY(check_arrays(received, call.dtype, comm));
  const int rank = comm->communicator->rank();
  if (sent.counts[rank] != received.counts[rank])
    return fail(
        fcclInvalidArgument,
        fmt::format("sendcounts[{}] is {} and recvcounts[{}] is {} on rank {}: what a rank sends itself it receives, so "
                    "they must be equal",
                    rank, sent.counts[rank], rank, received.counts[rank], rank));
  FCCL_TRY(set(comm->blocks.input, sent, call.dtype, comm, false));
  FCCL_TRY(set(comm->blocks.output, received, call.dtype, comm, true));
  call.uneven = &comm->blocks;
  return {};
}

fcclResult_t issue_if(const Result<void>& made, const UserCall& call, fcclComm_t comm, fcclStream_t stream) {
  return made ? issue(call, comm, stream) : report(call.function, made);
}

}  // namespace
}  // namespace fccl::core

extern "C" {

fcclResult_t fcclAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                            const size_t* displs, fcclDataType_t datatype, fcclComm_t comm, fcclStream_t stream) {
  fccl::core::UserCall call{__func__, fcclCollAllGatherV, sendbuff, recvbuff, 0, datatype};
  const auto made = fccl::core::all_gather_v(call, {"recvcounts", recvcounts, "displs", displs}, sendcount, comm);
  return fccl::core::issue_if(made, call, comm, stream);
}

fcclResult_t fcclReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* recvcounts, fcclDataType_t datatype,
                                fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream) {
  fccl::core::UserCall call{__func__, fcclCollReduceScatterV, sendbuff, recvbuff, 0, datatype, op};
  const auto made = fccl::core::reduce_scatter_v(call, {"recvcounts", recvcounts, "", nullptr}, comm);
  return fccl::core::issue_if(made, call, comm, stream);
}

fcclResult_t fcclAlltoAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                           const size_t* recvcounts, const size_t* rdispls, fcclDataType_t datatype, fcclComm_t comm,
                           fcclStream_t stream) {
  fccl::core::UserCall call{__func__, fcclCollAlltoAllV, sendbuff, recvbuff, 0, datatype};
  const auto made = fccl::core::all_to_all_v(call, {"sendcounts", sendcounts, "sdispls", sdispls},
                                             {"recvcounts", recvcounts, "rdispls", rdispls}, comm);
  return fccl::core::issue_if(made, call, comm, stream);
}

}  // extern "C"
