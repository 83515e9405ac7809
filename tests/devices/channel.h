// Channel: the thread that does what is enqueued, one operation after the other; and the queue, which is what users have of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "devices/gpu_options.h"
#include "devices/unseen.h"
#include "transports/dice.h"

namespace fccl::core::simulated {

// For what counts and orders nothing.
inline constexpr auto kRelaxed = std::memory_order_relaxed;

// Sleeps longer the longer it is asked to; one wait of one thread.
class Patience {
 public:
  void look_again_later();

 private:
  int looks_ = 0;
  int64_t waited_us_ = 0;
};

// State that the threads of one GPU share. All counters are relaxed: they order nothing.
struct Progress {
  explicit Progress(const GpuOptions& options) : options(options) {}

  const GpuOptions options;
  std::atomic<uint64_t> enqueued{0};
  std::atomic<uint64_t> finished{0};
  std::atomic<uint64_t> begun{0};
  std::atomic<bool> stopped{false};
  std::atomic<bool> broken{false};
  // The GPU is being destroyed: nothing more is done, and no wait goes on.
  std::atomic<bool> over{false};
  // Threads that have not ended.
  std::atomic<int> threads{0};

  bool is_dead() const { return over.load(std::memory_order_relaxed) || broken.load(std::memory_order_relaxed); }
  // Returns when `come` says so or the GPU is dead.
  void wait_until(const std::function<bool()>& come) const;
};

class Channel;

// A stream. Made by a Gpu, which keeps it until its own end.
struct GpuQueue {
  Channel* channel = nullptr;
  std::atomic<uint64_t> enqueued{0};
  std::atomic<uint64_t> finished{0};  // stored with release: a thread that asks whether it is idle, and hears yes, has an edge
  std::atomic<uint64_t> most_outstanding{0};
  std::atomic<bool> capturing{false};
  bool released = false;  // a wait of it ended by a number far ahead; the thread of its channel alone touches it
  GpuQueue* older = nullptr;

  size_t outstanding() const { return enqueued.load(std::memory_order_relaxed) - finished.load(std::memory_order_relaxed); }
};

// The work of an operation, on the thread of its channel.
using Work = std::function<void(Dice&)>;

// A thread that is started when the channel is made and ends after close(), when all is done. The one edge that it gives is
// from put() to the operation. It outlives its thread (Progress::threads).
class Channel {
 public:
  Channel(Progress& progress, uint64_t seed);

  // As `slots` entries of the queue. Any thread.
  void put(GpuQueue& queue, size_t slots, Work work);
  void close() { pending_.close(); }

  Channel* older = nullptr;

 private:
  struct Operation : UnseenLink {
    std::atomic<bool> handed{false};
    GpuQueue* queue = nullptr;
    size_t slots = 1;
    Work work;
  };

  void run();
  // Delays, and stops or breaks where options say so.
  void before_operation();

  Progress& progress_;
  Dice dice_;
  UnseenList pending_;
};

}  // namespace fccl::core::simulated
