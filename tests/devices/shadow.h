// Shadow: what a queue has written where others may look, and nobody can see yet.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "devices/gpu_options.h"
#include "devices/landing.h"
#include "transports/dice.h"

namespace fccl::core::simulated {

// The channel of the queue owns it; only its thread calls. What is kept at the end of the channel is lost.
class Shadow {
 public:
  Shadow(Dice& dice, const GpuOptions& options) : dice_(dice), options_(options) {}
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // Reads at once, and keeps back what is for others' eyes; the queue itself finds what it wrote before.
  void copy(const RealCopy& copy);
  // Lets everybody see what was kept, whose parts arrive in any order.
  void land();
  bool is_empty() const { return kept_.empty(); }

  // store() goes by it from now on, on this thread.
  void become_of_thread();

 private:
  struct Kept {
    std::vector<std::byte> bytes;  // the rows without gaps
    RealCopy copy;                 // from there
  };
  bool touches(const std::byte* begin, size_t bytes) const;

  Dice& dice_;
  const GpuOptions& options_;
  std::vector<Kept> kept_;
  size_t bytes_ = 0;  // in kept_
};

// What a kernel writes, on its queue's thread, to an address as its user knows it: at once where nobody else looks.
void store(std::byte* to, std::span<const std::byte> bytes);

}  // namespace fccl::core::simulated
