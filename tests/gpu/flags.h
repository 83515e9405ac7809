// Flags in host memory, for streams, kernels and hosts alike, and the watchdog that bounds the waits of streams for them.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "device.h"

namespace fccl::gpu {

inline constexpr size_t kFlagStride = 64;  // bytes: a line of the cache for each
// Satisfies every wait for a value up to itself: a wait is over when the flag minus the value is not negative.
inline constexpr uint32_t kReleased = 0x7fffffff;

// Flags in memory that other processes may map too, registered with this process's GPU. The memory must outlive it. Any thread
// may read and write flags.
class Flags {
 public:
  // Throws Unsupported where host memory cannot be registered.
  explicit Flags(std::span<std::byte> memory);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  size_t count() const { return memory_.size() / kFlagStride; }
  std::atomic<uint32_t>& host(size_t flag) const {
    return *reinterpret_cast<std::atomic<uint32_t>*>(memory_.subspan(flag * kFlagStride, kFlagStride).data());
  }
  CUdeviceptr device(size_t flag) const { return device_ + flag * kFlagStride; }
  uint32_t* kernel(size_t flag) const { return static_cast<uint32_t*>(pointer_to(device(flag))); }
  static constexpr size_t kStrideWords = kFlagStride / sizeof(uint32_t);

  void set_all(uint32_t value) const;
  // Until the flag has at least this value; throws at the deadline.
  void wait(size_t flag, uint32_t value, const Deadline& deadline, const char* what) const;

 private:
  std::span<std::byte> memory_;
  CUdeviceptr device_ = 0;
};

// Ends every wait for a flag at the deadline, which no stream can do for itself: it writes to all of them, again and again
// since streams also reset flags, until it is destroyed. Its thread sleeps before.
class Watchdog {
 public:
  Watchdog(const Flags& flags, const Deadline& deadline) : Watchdog([&flags] { flags.set_all(kReleased); }, deadline) {}
  // For flags elsewhere. `release` is called by the watchdog's thread.
  Watchdog(std::function<void()> release, const Deadline& deadline);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  bool has_bitten() const { return has_bitten_; }
  // Throws if the deadline has passed: what the streams did after that means nothing.
  void require_quiet(const char* what) const;

 private:
  void watch(Deadline deadline);

  std::function<void()> release_;
  std::atomic<bool> has_bitten_ = false;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stops_ = false;
  std::thread thread_;
};

// Enqueued on a stream. A wait is over when the flag has at least the value.
void enqueue_wait(const Stream& stream, CUdeviceptr flag, uint32_t value);
void enqueue_write(const Stream& stream, CUdeviceptr flag, uint32_t value);
CUstreamBatchMemOpParams wait_operation(CUdeviceptr flag, uint32_t value, unsigned flags = CU_STREAM_WAIT_VALUE_GEQ);
CUstreamBatchMemOpParams write_operation(CUdeviceptr flag, uint32_t value);
void enqueue_batch(const Stream& stream, std::span<CUstreamBatchMemOpParams> operations);

// The graph of what `enqueue` puts on a stream. Throws Unsupported where its operations cannot be captured.
Graph capture(const std::function<void(const Stream& stream)>& enqueue);

}  // namespace fccl::gpu
