// The C interface: host streams.
#include "communicator/c_api.h"
#include "communicator/stream.h"

using fccl::refuse;
using fccl::Stream;

namespace {

// What failed is an operation that was issued earlier, and its message says which.
fcclResult_t outcome_of(const fccl::Result<void>& result) { return result ? fcclSuccess : fccl::report("", result.error()); }

}  // namespace

extern "C" {

fcclResult_t fcclStreamCreate(fcclStream_t* stream) {
  if (stream == nullptr) return refuse(__func__, "stream is NULL");
  *stream = new Stream;
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
  const auto* queried = static_cast<const Stream*>(stream);
  if (const auto result = queried->result(); !result) return outcome_of(result);
  return queried->is_empty() ? fcclSuccess : fcclInProgress;
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
  static_cast<Stream*>(stream)->enqueue(fn, userData);
  return fcclSuccess;
}

}  // extern "C"
