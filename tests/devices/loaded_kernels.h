// LoadedKernels: which kernels a simulated GPU has in its memory.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

namespace fccl::core::simulated {

// Kernels by any number but 0. Any thread may call; it orders nothing. Kernels beyond those that it has room for are never
// there.
class LoadedKernels {
 public:
  // True if it was not there before.
  bool add(size_t kernel) {
    for (std::atomic<size_t>& loaded : all_) {
      size_t there = 0;
      if (loaded.compare_exchange_strong(there, kernel, std::memory_order_relaxed)) return true;
      if (there == kernel) return false;
    }
    return true;
  }
  bool holds(size_t kernel) const {
    return std::ranges::any_of(all_, [&](const auto& loaded) { return loaded.load(std::memory_order_relaxed) == kernel; });
  }

 private:
  std::array<std::atomic<size_t>, 256> all_{};
};

}  // namespace fccl::core::simulated
