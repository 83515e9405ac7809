// fence_all_threads: a memory fence in every thread of the process at once, so that a hot path of another thread needs none.
#pragma once

#include <atomic>

namespace fccl::core {

// The cheap side: keeps the compiler from moving the caller's loads and stores across it, and costs no instruction.
inline void fence_compiler() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// The dear side: every thread of the process passes a full fence between the caller's loads and stores before the call and
// those after it. If thread A stores x, calls fence_compiler and loads y, and thread B stores y, calls fence_all_threads and
// loads x, at least one of them sees the other's store. Takes a few microseconds, but
// milliseconds in the first call of a process with several threads, which makes itself known to the kernel. If the kernel
// refuses membarrier, as in some sandboxes, the call sleeps for 20 us instead: long enough in practice, but not by guarantee.
void fence_all_threads();

}  // namespace fccl::core
