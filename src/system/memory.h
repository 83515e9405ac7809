// Memory: its pages, and how much of it this process may still take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fccl {

// No page is smaller.
inline constexpr size_t kPageBytes = 4096;

struct AvailableMemory {
  uint64_t bytes = UINT64_MAX;
  std::string limited_by;  // the file that says so; empty if none could be read
};

// The least of what the machine has (MemAvailable) and what the memory limits of this process's control groups leave, v1 and
// v2, without the file pages that the kernel would drop. `root` stands for "/" in tests. Never fails: what cannot be read does
// not limit.
AvailableMemory available_memory(const std::string& root = "/");

// The longest file that this process may make (ulimit -f). The kernel kills a process by a signal that sizes a longer one, also
// in memory.
size_t longest_file();

}  // namespace fccl
