// Asks the scheduler for the thread's processors.
#include "os/processors.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <thread>

namespace fccl::core {

Processors allowed_processors() {
  Processors allowed;
  cpu_set_t set;
  static_assert(CPU_SETSIZE == Processors{}.size());
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = CPU_ISSET(i, &set);
    return allowed;
  }
  const size_t count = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, allowed.size());
  for (size_t i = 0; i < count; ++i) allowed.set(i);
  return allowed;
}

int current_processor() { return sched_getcpu(); }

}  // namespace fccl::core
