// Streams and events of the tests' device, as torch asks for them.
#pragma once

#include <c10/core/Stream.h>
#include <cuda.h>

namespace stand_in {

// The calling thread's.
c10::Stream current(c10::Device device);
CUstream native(const c10::Stream& stream);

// Events that have been recorded and not destroyed yet.
int live_events();

}  // namespace stand_in
