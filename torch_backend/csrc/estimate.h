// How long calls may take, in the library's price, without running them.
#pragma once

namespace fccl {

// From here on calls of this thread, on CPU memory, are not run. Each has to be followed by its end on the same thread.
void start_estimate();
// What the calls since the start may take, in microseconds.
float end_estimate();

}  // namespace fccl
