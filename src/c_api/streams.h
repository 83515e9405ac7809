// Finds the streams behind the handles of the C interface.
#pragma once

#include "base/result.h"
#include "fccl/fccl.h"

namespace fccl::core {

class Stream;

// Finds the stream of a call on CPU memory. It never dereferences a handle that is not a host stream: it may be a CUDA stream.
Result<Stream*> host_stream_of(fcclStream_t stream);

}  // namespace fccl::core
