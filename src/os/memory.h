// Memory: the size of pages, the memory that this process may still take, and a way to take it at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fccl::core {

// The smallest page of any supported machine.
inline constexpr size_t kPageBytes = 4096;

struct AvailableMemory {
  uint64_t bytes = UINT64_MAX;
  std::string limited_by;  // the file that gives the limit; empty if none could be read
};

// Returns the minimum of the machine's available memory (MemAvailable) and what the process's control groups (v1 and v2) leave.
// Page cache that the kernel would drop does not count as used. `root` replaces "/" in tests. Never fails: a file that cannot
// be read sets no limit.
AvailableMemory available_memory(const std::string& root = "/");

// Returns the longest file that this process may make (ulimit -f). The kernel sends a killing signal to a process that sizes a
// longer one, even in memory.
size_t longest_file();

// MADV_POPULATE_WRITE, for which older C libraries have no name.
inline constexpr int kPopulateWrite = 23;

// Has the kernel give shared memory its pages at once. That takes a fraction of the time in which a program finds them missing
// one by one. Never fails: a page that there was no memory for, or any on Linux before 5.14, comes when it is first written.
void take_pages(std::byte* begin, size_t bytes);

}  // namespace fccl::core
