// PerProcess: what a process has one of, and its fork one of its own.
#pragma once

#include <atomic>

#include "system/forks.h"

namespace fccl {

// Declared constinit, outside of functions: a fork finds it made or not made, never half made by a thread that it does not
// have, as it may find a static variable of a function. T is made at first use, by its default constructor, which has no effect
// elsewhere. In a fork it is made anew, since the parent's may be locked or half changed by a thread that the fork does not
// have; what was the parent's stays as it was. Never destroyed, since threads may outlive main. Any thread may call.
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
    unsigned forks = fccl::forks();
    Made* parents;  // kept for the leak sanitizer alone
  };
  std::atomic<Made*> made_{nullptr};
};

}  // namespace fccl
