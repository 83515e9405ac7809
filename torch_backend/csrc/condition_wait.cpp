// Keeps the adapter, and what torch's headers compile into it, from the condition_variable::wait that GCC 12 gave a new
// version.
#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace fccl::torch {

// The linker puts it in the place of std::condition_variable::wait (--wrap), and it does what that does. The C++ runtime of GCC
// 11 has that function by an older version only, which would be the one thing for which a wheel needs the runtime of GCC 12.
void wait(std::condition_variable& condition,
          std::unique_lock<std::mutex>& lock) __asm__("__wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

void wait(std::condition_variable& condition, std::unique_lock<std::mutex>& lock) {
  pthread_cond_wait(condition.native_handle(), lock.mutex()->native_handle());
}

}  // namespace fccl::torch
