// Channel: the thread that does what is enqueued, one operation after the other; and the queue, which is what users have of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "devices/connections.h"
#include "devices/gpu_options.h"
#include "devices/loaded_kernels.h"
#include "devices/shadow.h"
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
  // Held while an entry takes its places in its connection and in its queue, which are in one order therefore.
  UnseenLock enqueuing;
  LoadedKernels loaded;
  // Threads that have not ended.
  std::atomic<int> threads{0};

  bool is_dead() const { return over.load(std::memory_order_relaxed) || broken.load(std::memory_order_relaxed); }
  // Returns when `come` says so or the GPU is dead.
  void wait_until(const std::function<bool()>& come) const;
};

class Channel;

// A queue that was released after a failure copies garbage from and to memory that others use, too: races that nobody minds. So
// under the thread sanitizer it copies nothing.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kSkipsReleased = true;
#else
inline constexpr bool kSkipsReleased = false;
#endif

// A stream. Made by a Gpu, which keeps it until its own end.
struct GpuQueue {
  Channel* channel = nullptr;
  uint64_t number = 0;
  std::atomic<uint64_t> enqueued{0};
  std::atomic<uint64_t> done{0};
  // Those that are done and whose bytes everybody can see. It is stored with release: a thread that asks whether the queue is
  // idle, and hears yes, has an edge.
  std::atomic<uint64_t> finished{0};
  std::atomic<int> synchronizing{0};  // threads that wait for what was enqueued so far, and must see its bytes then
  std::atomic<uint64_t> most_outstanding{0};
  std::atomic<bool> capturing{false};
  bool released = false;  // a wait of it ended by a number far ahead; the thread of its channel alone touches it
  GpuQueue* older = nullptr;

  // True if its operations move no bytes any more.
  bool skips() const { return kSkipsReleased && released; }
  size_t outstanding() const { return enqueued.load(std::memory_order_relaxed) - done.load(std::memory_order_relaxed); }
};

// An operation that has come to the front of its connection.
struct Turn {
  Progress& progress;
  GpuQueue& queue;
  Connection& connection;
  Shadow& shadow;
  bool has_left = false;

  // Lets those behind it begin; at its end at the latest.
  void leave() {
    if (!std::exchange(has_left, true)) connection.leave();
  }
  // Lets everybody see what the queue has written before.
  void show();
  // Returns when `come` says so or the GPU is dead.
  void wait_until(const std::function<bool()>& come);
};

// The work of an operation, on the thread of its channel.
using Work = std::function<void(Turn&)>;

// A thread that is started when the channel is made and ends after close(), when all is done. The one edge that it gives is
// from put() to the operation. It outlives its thread (Progress::threads).
class Channel {
 public:
  Channel(Progress& progress, uint64_t seed);

  // As an entry of the queue and of the connection. Any thread.
  void put(GpuQueue& queue, Connection& connection, Work work);
  void close() { pending_.close(); }

  Channel* older = nullptr;

 private:
  struct Operation : UnseenLink {
    std::atomic<bool> handed{false};
    GpuQueue* queue = nullptr;
    Connection* connection = nullptr;
    uint64_t place = 0;  // in the connection
    Work work;
  };

  void run();
  // Delays, and stops or breaks where options say so.
  void before_operation();

  Progress& progress_;
  Dice dice_;
  Shadow shadow_;
  UnseenList pending_;
};

}  // namespace fccl::core::simulated
