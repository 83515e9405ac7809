// Registers the memory of flags with the GPU, writes and awaits them, and ends waits that last too long.
#include "flags.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "team.h"

namespace fccl::gpu {

Flags::Flags(std::span<std::byte> memory) : memory_(memory) {
  const cudaError_t registered =
      cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterMapped | cudaHostRegisterPortable);
  if (registered != cudaSuccess) throw Unsupported("registering host memory (" + text_of(registered) + ")");
  void* mapped = nullptr;
  GPU_CHECK(cudaHostGetDevicePointer(&mapped, memory.data(), 0));
  device_ = address_of(mapped);
}

Flags::~Flags() {
  // Unregistering waits for the GPU, which a rank that is leaving by an exception must not.
  if (std::uncaught_exceptions() == 0) cudaHostUnregister(memory_.data());
}

void Flags::set_all(uint32_t value) const {
  for (size_t flag = 0; flag < count(); ++flag) host(flag).store(value, std::memory_order_release);
}

void Flags::wait(size_t flag, uint32_t value, const Deadline& deadline, const char* what) const {
  constexpr int kLooksPerClock = 1024;
  for (int looks = 0; static_cast<int32_t>(host(flag).load(std::memory_order_acquire) - value) < 0; ++looks) {
    if (looks % kLooksPerClock == kLooksPerClock - 1 && deadline.has_passed()) {
      throw std::runtime_error("flag " + std::to_string(flag) + " had " + std::to_string(host(flag).load()) +
                               " at the deadline, not " + std::to_string(value) + ": " + what);
    }
  }
}

Watchdog::Watchdog(std::function<void()> release, const Deadline& deadline)
    : release_(std::move(release)), thread_([this, deadline] { watch(deadline); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  stopping_.notify_all();
  thread_.join();
}

void Watchdog::require_quiet(const char* what) const {
  if (has_bitten_) throw std::runtime_error(std::string("the deadline passed, and the flags were released: ") + what);
}

void Watchdog::watch(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (stopping_.wait_until(lock, deadline.moment(), [this] { return stops_; })) return;
  has_bitten_ = true;
  while (!stops_) {
    release_();
    stopping_.wait_for(lock, std::chrono::microseconds(100));
  }
}

void enqueue_wait(const Stream& stream, CUdeviceptr flag, uint32_t value) {
  GPU_CHECK(driver().stream_wait_value(stream.get(), flag, value, CU_STREAM_WAIT_VALUE_GEQ));
}

void enqueue_write(const Stream& stream, CUdeviceptr flag, uint32_t value) {
  GPU_CHECK(driver().stream_write_value(stream.get(), flag, value, CU_STREAM_WRITE_VALUE_DEFAULT));
}

CUstreamBatchMemOpParams wait_operation(CUdeviceptr flag, uint32_t value, unsigned flags) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = flag;
  operation.waitValue.value = value;
  operation.waitValue.flags = flags;
  return operation;
}

CUstreamBatchMemOpParams write_operation(CUdeviceptr flag, uint32_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = flag;
  operation.writeValue.value = value;
  return operation;
}

void enqueue_batch(const Stream& stream, std::span<CUstreamBatchMemOpParams> operations) {
  GPU_CHECK(driver().stream_batch(stream.get(), static_cast<unsigned>(operations.size()), operations.data(), 0));
}

Graph capture(const std::function<void(const Stream& stream)>& enqueue) {
  const Stream stream = make_stream();
  cudaGraph_t captured = nullptr;
  GPU_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  try {
    enqueue(stream);
  } catch (const std::exception& refused) {
    throw Unsupported(std::string("stream memory operations while a stream is captured: ") + refused.what());
  }
  GPU_CHECK(cudaStreamEndCapture(stream.get(), &captured));
  return Graph(captured);
}

}  // namespace fccl::gpu
