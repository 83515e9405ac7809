// Fences all threads by membarrier, or sleeps where the kernel refuses it.
#include "os/thread_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace fccl::core {
namespace {

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

void fence_all_threads() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // A process registers once; a child of fork may have to do it again.
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace fccl::core
