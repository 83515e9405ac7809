// GpuContext: what every call on a simulated GPU asks first: whether the GPU is current on the thread, whether it is broken,
// whether a test wants the call to fail, and whether another call keeps it waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "devices/channel.h"
#include "devices/gpu_options.h"
#include "devices/refusal.h"
#include "devices/unseen.h"

namespace fccl::core::simulated {

class Gpu;

// Stands for one GPU towards those who call it, as a context of CUDA's does. The Gpu owns it. Any thread may call; each has its
// own stack of GPUs. It gives no order between threads (devices/unseen.h).
class GpuContext {
 public:
  GpuContext(const Gpu& gpu, const Progress& progress);
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  // The calling thread's GPUs, the last of which is current. Calls on behalf of a test are not counted, and no fault fails
  // them.
  enum class Caller : uint8_t { library, test };
  static void push_current(Gpu* gpu, Caller caller = Caller::library);
  static Gpu* pop_current();
  static Gpu* current();

  const GpuOptions& options() const { return progress_.options; }
  // The GPU's name in refusals.
  std::string name() const;

  // The check with which every call begins.
  Answer<void> begin_call(const char* call);
  // The same for a call that sets up; where options say so, it waits for all that is outstanding.
  Answer<void> begin_set_up(const char* call);
  // These wait for all that is outstanding, or until `come` says so, and keep every other thread waiting that calls this GPU.
  void wait_for_all();
  void wait_alone(const std::function<bool()>& come);

  // ---- For tests
  void fail_call_after(uint64_t calls) { fails_call_.store(calls_.load() + calls, std::memory_order_relaxed); }
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  const Gpu& gpu_;
  const Progress& progress_;
  UnseenDoor door_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> fails_call_;
};

}  // namespace fccl::core::simulated
