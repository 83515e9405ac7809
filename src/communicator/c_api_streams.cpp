// The C interface: host streams.
#include "communicator/c_api.h"
#include "communicator/stream.h"

using fccl::refuse;
using fccl::report;
using fccl::Stream;

extern "C" {

fcclResult_t fcclStreamCreate(fcclStream_t* stream) {
  if (stream == nullptr) return refuse(__func__, "stream is NULL");
  *stream = new Stream;
  return fcclSuccess;
}

fcclResult_t fcclStreamDestroy(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  const std::unique_ptr<Stream> owned(static_cast<Stream*>(stream));
  return report(__func__, owned->synchronize());
}

fcclResult_t fcclStreamQuery(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  const auto* queried = static_cast<const Stream*>(stream);
  if (const auto result = queried->result(); !result) return report(__func__, result);
  return queried->is_empty() ? fcclSuccess : fcclInProgress;
}

fcclResult_t fcclStreamSynchronize(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  return report(__func__, static_cast<Stream*>(stream)->synchronize());
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
