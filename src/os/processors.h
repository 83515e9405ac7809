// Processors: the processors of this machine that a thread may run on.
#pragma once

#include <bitset>

namespace fccl::core {

using Processors = std::bitset<1024>;

// Returns the calling thread's processors. If the kernel does not tell, returns the machine's number of processors, counted
// from 0.
Processors allowed_processors();

// Returns the processor that runs the calling thread now; takes a nanosecond or two.
int current_processor();

}  // namespace fccl::core
