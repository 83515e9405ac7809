// forks: the number of forks between this process and the one that loaded the library.
#pragma once

#include <atomic>

namespace fccl::core {

// Incremented in the child before fork() returns; only forks() reads it.
extern std::atomic<unsigned> fork_count;

inline unsigned forks() { return fork_count.load(std::memory_order_relaxed); }

}  // namespace fccl::core
