// The C interface: host streams.
#include "c_api/c_api.h"
#include "communicator/issued_call.h"
#include "communicator/issued_group.h"
#include "communicator/stream.h"
#include "communicator/worker.h"

using fccl::refuse;
using fccl::Stream;

namespace {

// What failed is an operation that was issued earlier, and its message says which.
fcclResult_t outcome_of(const fccl::Result<void>& result) { return result ? fcclSuccess : fccl::report("", result.error()); }

}  // namespace

extern "C" {

fcclResult_t fcclStreamCreate(fcclStream_t* stream) {
  if (stream == nullptr) return refuse(__func__, "stream is NULL");
  auto made = Stream::make();
  if (!made) return fccl::report(__func__, made.error());
  *stream = made->release();
  return fcclSuccess;
}

fcclResult_t fcclStreamDestroy(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  if (fccl::Worker::is_this_thread()) return fccl::refuse_in_host_function(__func__);
  const std::unique_ptr<Stream> owned(static_cast<Stream*>(stream));
  return outcome_of(owned->synchronize());
}

fcclResult_t fcclStreamQuery(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  const auto empty = static_cast<const Stream*>(stream)->query();
  if (!empty) return fccl::report("", empty.error());
  return *empty ? fcclSuccess : fcclInProgress;
}

fcclResult_t fcclStreamSynchronize(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  if (fccl::Worker::is_this_thread()) return fccl::refuse_in_host_function(__func__);
  return outcome_of(static_cast<Stream*>(stream)->synchronize());
}

fcclResult_t fcclLaunchHostFunc(fcclStream_t stream, fcclHostFunc_t fn, void* userData) {
  if (fn == nullptr) return refuse(__func__, "fn is NULL");
  if (stream == nullptr) {
    fn(userData);
    return fcclSuccess;
  }
  auto* queue = static_cast<Stream*>(stream);
  if (const auto usable = queue->check_usable(); !usable) return fccl::report(__func__, usable.error());
  queue->enqueue(Stream::HostFunction{fn, userData});
  return fcclSuccess;
}

}  // extern "C"
