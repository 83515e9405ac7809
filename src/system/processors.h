// Processors: which of this machine's processors a thread may run on.
#pragma once

#include <bitset>

namespace fccl {

using Processors = std::bitset<1024>;

// Those of the calling thread; where the kernel does not say, as many as the machine has, from the first on.
Processors allowed_processors();

// The calling thread's, now; it costs a nanosecond or two.
int current_processor();

}  // namespace fccl
