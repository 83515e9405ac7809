// Threads: the threads of this process as the kernel lists them.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

namespace fccl::core::testing {

struct ThreadOfProcess {
  std::string name;
  uint64_t blocked = 0;  // bit n - 1: signal n
};

inline std::vector<ThreadOfProcess> threads_of_process() {
  std::vector<ThreadOfProcess> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ThreadOfProcess thread;
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Name:\t")) thread.name = line.substr(6);
      if (line.starts_with("SigBlk:\t")) thread.blocked = std::stoull(line.substr(8), nullptr, 16);
    }
    threads.push_back(thread);
  }
  return threads;
}

inline uint64_t bit_of(int signal) { return uint64_t{1} << (signal - 1); }

// Every signal that a thread of the library leaves to the application's: all that can be blocked but those of a thread's own
// faults and the C library's two.
inline uint64_t signals_of_application() {
  uint64_t signals = ~uint64_t{0};
  for (const int other : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, 32, 33})
    signals &= ~bit_of(other);
  return signals;
}

}  // namespace fccl::core::testing
