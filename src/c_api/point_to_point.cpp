// The C interface: sends and receives.
#include <fmt/format.h>

#include "c_api/handle.h"
#include "c_api/report.h"
#include "c_api/streams.h"
#include "operations/host_function.h"

namespace fccl::core {
namespace {

// Holds a user's call before it has been checked.
struct UserTransfer {
  const char* function;
  TransferEnd transfer;
  bool is_tagged = false;
};

Result<void> check_transfer(const UserTransfer& user, int ranks) {
  const TransferEnd& transfer = user.transfer;
  const Envelope& envelope = transfer.envelope;
  const bool sends = transfer.direction == Direction::send;
  if (!is_valid(envelope.dtype))
    return fail(fcclInvalidArgument, fmt::format("datatype {} is not an fcclDataType_t", int{envelope.dtype}));
  const bool allows_any_source = user.is_tagged && !sends;
  const bool is_any = allows_any_source && transfer.peer == FCCL_ANY_SOURCE;
  if (transfer.peer >= ranks || (transfer.peer < 0 && !is_any))
    return fail(fcclInvalidArgument, fmt::format("peer is {}: give 0 <= peer < {}{}", transfer.peer, ranks,
                                                 allows_any_source ? ", or FCCL_ANY_SOURCE" : ""));
  if (user.is_tagged && envelope.tag < 0)
    return fail(fcclInvalidArgument, fmt::format("tag is {}: give a tag >= 0", envelope.tag));
  if (envelope.count > SIZE_MAX / 2 / size_of(envelope.dtype))
    return fail(fcclInvalidArgument,
                fmt::format("count {} of {} is more than memory can hold", envelope.count, name_of(envelope.dtype)));
  if (envelope.count > 0 && (sends ? transfer.source : transfer.target) == nullptr)
    return fail(MessageKind::null_buffer,
                fmt::format("{} is NULL with count {}", sends ? "sendbuff" : "recvbuff", envelope.count));
  return {};
}

fcclResult_t run(const UserTransfer& user, fcclComm_t comm, fcclStream_t stream) {
  if (comm == nullptr) return refuse(user.function, "comm is NULL");
  if (const auto free = check_free(comm); !free) return report(user.function, free);
  Communicator& communicator = *comm->communicator;
  if (auto checked = check_transfer(user, communicator.ranks()); !checked) return report(user.function, checked);
  if (communicator.device() != nullptr) return report(user.function, communicator.transfer_on_device(user.transfer, {stream}));
  const auto host_stream = host_stream_of(stream);
  if (!host_stream) return report(user.function, host_stream);
  if (*host_stream == nullptr && is_in_host_function()) [[unlikely]]
    return refuse_in_host_function(user.function);
  return report(user.function, communicator.transfer(user.transfer, *host_stream));
}

}  // namespace
}  // namespace fccl::core

extern "C" {

fcclResult_t fcclSend(const void* sendbuff, size_t count, fcclDataType_t datatype, int peer, fcclComm_t comm,
                      fcclStream_t stream) {
  return fccl::core::run({__func__,
                          {.direction = fccl::core::Direction::send,
                           .peer = peer,
                           .envelope = {fccl::core::kUntagged, datatype, count},
                           .source = sendbuff}},
                         comm, stream);
}

fcclResult_t fcclRecv(void* recvbuff, size_t count, fcclDataType_t datatype, int peer, fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::run({__func__,
                          {.direction = fccl::core::Direction::receive,
                           .peer = peer,
                           .envelope = {fccl::core::kUntagged, datatype, count},
                           .target = recvbuff}},
                         comm, stream);
}

fcclResult_t fcclSendTagged(const void* sendbuff, size_t count, fcclDataType_t datatype, int peer, int tag, fcclComm_t comm,
                            fcclStream_t stream) {
  return fccl::core::run(
      {__func__,
       {.direction = fccl::core::Direction::send, .peer = peer, .envelope = {tag, datatype, count}, .source = sendbuff},
       true},
      comm, stream);
}

fcclResult_t fcclRecvTagged(void* recvbuff, size_t count, fcclDataType_t datatype, int peer, int tag, int* source,
                            fcclComm_t comm, fcclStream_t stream) {
  return fccl::core::run({__func__,
                          {.direction = fccl::core::Direction::receive,
                           .peer = peer,
                           .envelope = {tag, datatype, count},
                           .target = recvbuff,
                           .told_source = source},
                          true},
                         comm, stream);
}

}  // extern "C"
