// Makes a pool of driver streams for each device, and answers torch's calls on streams and events.
#include "streams.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "driver.h"
#include "memory.h"

namespace stand_in {
namespace {

constexpr int kPool = 4;
thread_local std::map<c10::DeviceIndex, c10::StreamId> current_ids;
std::atomic<int> events{0};

c10::Stream stream_of(c10::Device device, c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, device, id); }

class Pool {
 public:
  c10::Stream next(c10::Device device) {
    const std::lock_guard lock(mutex_);
    auto& streams = streams_[device.index()];
    for (auto made = static_cast<int>(streams.size()); made < kPool; ++made) {
      CUstream stream = nullptr;
      check(driver().create_stream(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      streams.push_back(reinterpret_cast<c10::StreamId>(stream));
    }
    return stream_of(device, streams[taken_++ % kPool]);
  }

 private:
  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::vector<c10::StreamId>> streams_;
  size_t taken_ = 0;
};

Pool& pool() {
  static auto* const streams = new Pool;
  return *streams;
}

// Switches to a stream's device for a call.
class OnDevice {
 public:
  explicit OnDevice(const c10::Stream& stream) : before_(current_device()) { use_device(stream.device_index()); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { use_device(before_); }

 private:
  const c10::DeviceIndex before_;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::Device getDevice() const override { return {c10::kPrivateUse1, current_device()}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    use_device(device.index());
    return before;
  }
  void setDevice(c10::Device device) const override { use_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { use_device(device.index()); }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count()); }

  c10::Stream getStream(c10::Device device) const override { return current(device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(device, 0); }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override { return pool().next(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override { return pool().next(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = current(stream.device());
    current_ids[stream.device_index()] = stream.id();
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return native(stream); }
  bool queryStream(const c10::Stream& stream) const override { return driver().query_stream(native(stream)) == CUDA_SUCCESS; }
  void synchronizeStream(const c10::Stream& stream) const override {
    const OnDevice device(stream);
    check(driver().synchronize_stream(native(stream)), "cuStreamSynchronize");
  }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    const OnDevice device(stream);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    check(driver().is_capturing(native(stream), &status), "cuStreamIsCapturing");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex /*device*/, c10::EventFlag /*flag*/) const override {
    const OnDevice device(stream);
    auto* recorded = static_cast<CUevent>(*event);
    if (recorded == nullptr) {
      check(driver().create_event(&recorded, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
      ++events;
    }
    *event = recorded;
    check(driver().record_event(recorded, native(stream)), "cuEventRecord");
  }
  void block(void* event, const c10::Stream& stream) const override {
    const OnDevice device(stream);
    check(driver().wait_event(native(stream), static_cast<CUevent>(event), 0), "cuStreamWaitEvent");
  }
  bool queryEvent(void* event) const override {
    const CUresult result = driver().query_event(static_cast<CUevent>(event));
    if (result == CUDA_ERROR_NOT_READY) return false;
    check(result, "cuEventQuery");
    return true;
  }
  void synchronizeEvent(void* event) const override {
    check(driver().synchronize_event(static_cast<CUevent>(event)), "cuEventSynchronize");
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    const OnDevice on_device(stream_of({c10::kPrivateUse1, device}, 0));
    check(driver().synchronize(), "cuCtxSynchronize");
  }
  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    if (event == nullptr) return;
    --events;
    (void)driver().destroy_event(static_cast<CUevent>(event));
  }
  void recordDataPtrOnStream(const c10::DataPtr& pointer, const c10::Stream& stream) const override {
    record_on_stream(pointer, stream);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace

c10::Stream current(c10::Device device) {
  const auto id = current_ids.find(device.index());
  return stream_of(device, id == current_ids.end() ? 0 : id->second);
}

CUstream native(const c10::Stream& stream) { return reinterpret_cast<CUstream>(stream.id()); }

int live_events() { return events; }

}  // namespace stand_in
