// The C interface: host streams.
#include "c_api/streams.h"

#include <fmt/format.h>

#include "c_api/report.h"
#include "operations/host_function.h"
#include "operations/stream.h"

using fccl::core::refuse;
using fccl::core::Stream;

fccl::core::Result<Stream*> fccl::core::host_stream_of(fcclStream_t stream) {
  Stream* const found = stream == nullptr ? nullptr : Stream::find(stream);
  if (found == nullptr && stream != nullptr) [[unlikely]]
    return fail(
        MessageKind::other_stream,
        fmt::format("stream {} is not a host stream of this process, but the communicator is of CPU memory: give NULL or "
                    "one that fcclStreamCreate made. For buffers in CUDA memory and a cudaStream_t make a "
                    "communicator with memoryKind = fcclMemoryCuda",
                    stream));
  return found;
}

namespace {

// The failed operation was issued earlier, and its message names it.
fcclResult_t outcome_of(const fccl::core::Result<void>& result) {
  return result ? fcclSuccess : fccl::core::report("", result.error());
}

// The handle is not dereferenced: it may be anything.
fcclResult_t refuse_stream(const char* function, fcclStream_t stream) {
  return refuse(function,
                fmt::format("stream {} is not a host stream of this process: give one that fcclStreamCreate made", stream));
}

}  // namespace

extern "C" {

fcclResult_t fcclStreamCreate(fcclStream_t* stream) {
  if (stream == nullptr) return refuse(__func__, "stream is NULL");
  auto made = Stream::make();
  if (!made) return fccl::core::report(__func__, made.error());
  *stream = made->release();
  return fcclSuccess;
}

fcclResult_t fcclStreamDestroy(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  if (fccl::core::is_in_host_function()) return fccl::core::refuse_in_host_function(__func__);
  const std::unique_ptr<Stream> owned(Stream::find(stream));
  if (!owned) return refuse_stream(__func__, stream);
  return outcome_of(owned->synchronize());
}

fcclResult_t fcclStreamQuery(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  const Stream* const found = Stream::find(stream);
  if (found == nullptr) return refuse_stream(__func__, stream);
  const auto empty = found->query();
  if (!empty) return fccl::core::report("", empty.error());
  return *empty ? fcclSuccess : fcclInProgress;
}

fcclResult_t fcclStreamSynchronize(fcclStream_t stream) {
  if (stream == nullptr) return fcclSuccess;
  if (fccl::core::is_in_host_function()) return fccl::core::refuse_in_host_function(__func__);
  Stream* const found = Stream::find(stream);
  return found == nullptr ? refuse_stream(__func__, stream) : outcome_of(found->synchronize());
}

fcclResult_t fcclStreamGetPosition(fcclStream_t stream, unsigned long long* position) {
  if (position == nullptr) return refuse(__func__, "position is NULL");
  const Stream* const found = stream == nullptr ? nullptr : Stream::find(stream);
  if (found == nullptr && stream != nullptr) return refuse_stream(__func__, stream);
  *position = 0;
  if (found == nullptr) return fcclSuccess;
  const auto issued = found->position();
  if (!issued) return fccl::core::report(__func__, issued.error());
  *position = *issued;
  return fcclSuccess;
}

fcclResult_t fcclStreamSynchronizeTo(fcclStream_t stream, unsigned long long position, int timeoutMs) {
  if (stream == nullptr) return fcclSuccess;
  if (fccl::core::is_in_host_function()) return fccl::core::refuse_in_host_function(__func__);
  Stream* const found = Stream::find(stream);
  if (found == nullptr) return refuse_stream(__func__, stream);
  const auto issued = found->position();
  if (!issued) return fccl::core::report(__func__, issued.error());
  if (position > *issued)
    return refuse(__func__, fmt::format("position is {}, but only {} have been issued on the stream: give one that "
                                        "fcclStreamGetPosition gave",
                                        position, *issued));
  const fccl::core::Deadline deadline = timeoutMs < 0 ? fccl::core::Deadline{fccl::core::Clock::time_point::max()}
                                                      : fccl::core::Deadline::after(std::chrono::milliseconds(timeoutMs));
  const auto done = found->synchronize_to(position, deadline);
  if (!done) return fccl::core::report("", done.error());
  return *done ? fcclSuccess : fcclInProgress;
}

fcclResult_t fcclLaunchHostFunc(fcclStream_t stream, fcclHostFunc_t fn, void* userData) {
  if (fn == nullptr) return refuse(__func__, "fn is NULL");
  if (stream == nullptr) {
    fn(userData);
    return fcclSuccess;
  }
  Stream* const queue = Stream::find(stream);
  if (queue == nullptr) return refuse_stream(__func__, stream);
  if (const auto usable = queue->check_usable(); !usable) return fccl::core::report(__func__, usable.error());
  queue->enqueue(std::make_unique<fccl::core::HostFunction>(fn, userData));
  return fcclSuccess;
}

}  // extern "C"
