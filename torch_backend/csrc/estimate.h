// Estimates how long calls take, by the library's price model, without running them.
#pragma once

namespace fccl::torch {

// From now on this thread's calls on CPU memory are not run. Each start must be followed by an end on the same thread.
void start_estimate();
// Returns the estimate for the calls since the start, in microseconds.
float end_estimate();

}  // namespace fccl::torch
