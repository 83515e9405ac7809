// forks: how often this process is a fork of one that had the library loaded.
#pragma once

#include <atomic>

namespace fccl {

// Raised in the child before fork() returns there; read by forks alone.
extern std::atomic<unsigned> fork_count;

inline unsigned forks() { return fork_count.load(std::memory_order_relaxed); }

}  // namespace fccl
