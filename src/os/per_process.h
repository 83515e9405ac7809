// PerProcess: an object that exists once per process; a fork gets its own.
#pragma once

#include <atomic>

#include "os/forks.h"

namespace fccl::core {

// Declare it constinit, outside of functions: a fork then finds it made or not made, never half made, as could happen to a
// function's static variable. The first use makes T by its default constructor, which must have no effect elsewhere. A fork
// makes a new T, because another thread may have locked or half changed the parent's during the fork; the parent's T stays
// unchanged. T is never destroyed, since threads may outlive main. Any thread may call.
template <class T>
class PerProcess {
 public:
  constexpr PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  T& get() {
    Made* found = made_.load(std::memory_order_acquire);
    while (found == nullptr || found->forks != forks()) {
      auto* fresh = new Made{.parents = found};
      if (made_.compare_exchange_strong(found, fresh, std::memory_order_acq_rel, std::memory_order_acquire))
        return fresh->value;
      delete fresh;
    }
    return found->value;
  }

 private:
  struct Made {
    T value{};
    unsigned forks = fccl::core::forks();
    Made* parents;  // keeps the parent's object reachable for the leak sanitizer
  };
  std::atomic<Made*> made_{nullptr};
};

}  // namespace fccl::core
