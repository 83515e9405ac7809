// Implements each function of Device by one or two calls of CUDA's driver.
#include "device/cuda_device.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "device/reduction.h"
#include "os/per_process.h"

namespace fccl::core {
namespace {

constexpr size_t kWordsPerCall = 255;  // the limit of cuStreamBatchMemOp

struct OpenDevices {
  std::mutex mutex;
  std::map<int, std::shared_ptr<CudaDevice>> devices;
};
constinit PerProcess<OpenDevices> open_devices;

// Counts the Uses of any device that the thread is inside of. Keeps the capture mode that the thread had before the first one.
struct UsesOfThread {
  int count = 0;
  CUstreamCaptureMode mode{};
};
thread_local UsesOfThread uses_of_thread;

class CudaPinnedMemory : public PinnedMemory {
 public:
  CudaPinnedMemory(std::shared_ptr<CudaDevice> device, std::byte* host, CUdeviceptr address)
      : device_(std::move(device)), host_(host), address_(address) {}
  ~CudaPinnedMemory() override { device_->unpin(host_); }
  std::byte* device_address(const void* host) const override {
    return std::bit_cast<std::byte*>(address_) + (static_cast<const std::byte*>(host) - host_);
  }

 private:
  std::shared_ptr<CudaDevice> device_;
  std::byte* host_;
  CUdeviceptr address_;
};

CUstream stream_of(Queue queue) { return static_cast<CUstream>(queue.native); }
CUevent event_of(Mark mark) { return static_cast<CUevent>(mark.native); }
CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUstreamBatchMemOpParams driver_operation(const WordOperation& operation) {
  CUstreamBatchMemOpParams made{};
  if (operation.kind == WordOperation::Kind::write) {
    made.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    made.writeValue.address = address_of(operation.word);
    made.writeValue.value64 = operation.value;
    made.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;  // includes the memory fence that WordOperation promises
  } else {
    made.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    made.waitValue.address = address_of(operation.word);
    made.waitValue.value64 = operation.value;
    made.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;  // compares numbers that wrap
  }
  return made;
}

CUDA_MEMCPY2D driver_copy(const Copy& copy) {
  CUDA_MEMCPY2D made{};
  made.srcMemoryType = made.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  made.srcDevice = address_of(copy.from);
  made.srcPitch = copy.from_pitch;
  made.dstDevice = address_of(copy.to);
  made.dstPitch = copy.to_pitch;
  made.WidthInBytes = copy.bytes;
  made.Height = copy.rows;
  return made;
}

}  // namespace

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(const CudaDriver& driver, int ordinal) {
  int count = 0;
  if (const CUresult result = driver.device_get_count(&count); result != CUDA_SUCCESS || count == 0)
    return fail(fcclSystemError, fmt::format("cannot use a GPU: no GPU (cuDeviceGetCount said {} and counted {})",
                                             driver.text_of(result), count));
  if (ordinal < 0 || ordinal >= count)
    return fail(fcclInvalidArgument, fmt::format("cannot use GPU {}: this process has GPUs 0 to {}, as CUDA_VISIBLE_DEVICES "
                                                 "leaves them to it",
                                                 ordinal, count - 1));
  CUdevice device = 0;
  if (const CUresult result = driver.device_get(&device, ordinal); result != CUDA_SUCCESS)
    return fail(fcclUnhandledCudaError, fmt::format("cannot use GPU {}: cuDeviceGet said {}", ordinal, driver.text_of(result)));
  std::shared_ptr<CudaDevice> opened(new CudaDevice(driver, device));
  FCCL_TRY(opened->find_limits(ordinal));
  FCCL_TRY(
      opened->check(driver.primary_context_retain(&opened->context_, device), "make a context", "cuDevicePrimaryCtxRetain"));
  return opened;
}

Result<void> CudaDevice::find_limits(int ordinal) {
  limits_.ordinal = ordinal;
  limits_.name = fmt::format("device {}", ordinal);
  std::array<char, 256> name{};
  FCCL_TRY(check(driver_.device_get_name(name.data(), name.size(), device_), "ask for the name", "cuDeviceGetName"));
  std::array<char, 32> bus_id{};
  FCCL_TRY(check(driver_.device_get_bus_id(bus_id.data(), bus_id.size(), device_), "ask for the bus", "cuDeviceGetPCIBusId"));
  limits_.bus_id = bus_id.data();
  CUuuid uuid{};
  FCCL_TRY(check(driver_.device_get_uuid(&uuid, device_), "ask for the identity", "cuDeviceGetUuid"));
  for (const char byte : uuid.bytes) limits_.identity += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  const auto attribute = [this](CUdevice_attribute which) {
    int value = 0;
    return driver_.device_get_attribute(&value, which, device_) == CUDA_SUCCESS
               ? value
               : 0;  // an older driver does not know every attribute
  };
  int version = 0;
  FCCL_TRY(check(driver_.driver_get_version(&version), "ask for the driver's version", "cuDriverGetVersion"));
  limits_.name = fmt::format("{}, compute capability {}.{}, driver {}.{}", name.data(),
                             attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                             attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), version / 1000, version % 1000 / 10);
  limits_.waits_for_words =
      driver_.stream_batch != nullptr && attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
  limits_.words_per_call = kWordsPerCall;
  limits_.most_pitch = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH));
  limits_.pins_read_only = attribute(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED) != 0;
  limits_.lends = attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 &&
                  attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  limits_.why_no_sums = CudaKernels::why_none(driver_, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  limits_.is_part_of_gpu = std::string(name.data()).find(" MIG ") != std::string::npos;
  return {};
}

Result<void> CudaDevice::check(CUresult result, const char* attempt, const char* called) const {
  if (is_of_parent())
    return fail(MessageKind::forked,
                fmt::format("cannot {} on GPU {}: this process was forked from the one that opened it, and CUDA allows no such "
                            "use; start the process anew",
                            attempt, limits_.ordinal));
  if (result == CUDA_SUCCESS) return {};
  return fail(fcclUnhandledCudaError,
              fmt::format("cannot {} on GPU {} ({}, {}): {} said {}. Earlier work of anybody on this GPU may be the cause; "
                          "CUDA_LAUNCH_BLOCKING=1 and compute-sanitizer find it",
                          attempt, limits_.ordinal, limits_.name, limits_.bus_id, called, driver_.text_of(result)));
}

// Leaves the default capture mode. While any thread records a graph in the global mode, a stream query by a thread in that mode
// fails and ends the recording.
Result<void> CudaDevice::enter() {
  if (is_of_parent()) return fail(check(CUDA_SUCCESS, "make the context current", "").error());
  FCCL_TRY(check(driver_.context_push(context_), "make the context current", "cuCtxPushCurrent"));
  if (uses_of_thread.count++ > 0) return {};
  uses_of_thread.mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)driver_.exchange_capture_mode(&uses_of_thread.mode);
  return {};
}

void CudaDevice::leave() {
  if (is_of_parent()) return;
  if (--uses_of_thread.count == 0) (void)driver_.exchange_capture_mode(&uses_of_thread.mode);
  CUcontext left = nullptr;
  (void)driver_.context_pop(&left);
}

Result<std::unique_ptr<PinnedMemory>> CudaDevice::pin(std::span<std::byte> memory) { return pin(memory, 0); }

Result<std::unique_ptr<PinnedMemory>> CudaDevice::pin_read_only(std::span<const std::byte> memory) {
  return pin({const_cast<std::byte*>(memory.data()), memory.size()}, CU_MEMHOSTREGISTER_READ_ONLY);
}

Result<std::unique_ptr<PinnedMemory>> CudaDevice::pin(std::span<std::byte> memory, unsigned flags) {
  constexpr unsigned kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  if (is_of_parent()) return fail(check(CUDA_SUCCESS, "pin memory", "").error());
  FCCL_TRY(check(driver_.host_register(memory.data(), memory.size(), kFlags | flags),
                 fmt::format("pin {} bytes at {}", memory.size(), fmt::ptr(memory.data())).c_str(), "cuMemHostRegister"));
  CUdeviceptr address = 0;
  auto found =
      check(driver_.host_get_device_pointer(&address, memory.data(), 0), "find pinned memory", "cuMemHostGetDevicePointer");
  if (found) return std::make_unique<CudaPinnedMemory>(shared_from_this(), memory.data(), address);
  (void)driver_.host_unregister(memory.data());
  return fail(std::move(found).error());
}

void CudaDevice::unpin(void* memory) {
  const Use use(*this);
  if (!is_of_parent() && use.entered()) (void)driver_.host_unregister(memory);
}

CheckResult CudaDevice::checker() const {
  return [this](CUresult result, const char* attempt, const char* called) { return check(result, attempt, called); };
}

Result<std::unique_ptr<DeviceMemory>> CudaDevice::make_memory(size_t bytes) {
  if (is_of_parent()) return fail(check(CUDA_SUCCESS, "make memory", "").error());
  auto made = std::make_unique<CudaMemory>(shared_from_this(), driver_, device_);
  FCCL_TRY(made->make(bytes, checker()));
  return made;
}

Result<Descriptor> CudaDevice::lend(const DeviceMemory& memory) {
  if (is_of_parent()) return fail(check(CUDA_SUCCESS, "lend memory", "").error());
  return static_cast<const CudaMemory&>(memory).lend(checker());
}

// CUDA knows no access to a GPU's memory for reading alone.
Result<std::unique_ptr<DeviceMemory>> CudaDevice::borrow(const Descriptor& lent, size_t bytes, Access /*access*/) {
  if (is_of_parent()) return fail(check(CUDA_SUCCESS, "borrow memory", "").error());
  auto borrowed = std::make_unique<CudaMemory>(shared_from_this(), driver_, device_);
  FCCL_TRY(borrowed->borrow(lent, bytes, checker()));
  return borrowed;
}

Result<void> CudaDevice::share(const DeviceMemory& memory, Access /*access*/) {
  if (is_of_parent()) return check(CUDA_SUCCESS, "reach memory", "");
  return static_cast<const CudaMemory&>(memory).let(device_, checker());
}

Result<void> CudaDevice::load(size_t sources) {
  if (is_of_parent()) return check(CUDA_SUCCESS, "load kernels", "");
  if (!limits_.why_no_sums.empty())
    return fail(fcclSystemError, fmt::format("GPU {} has no kernels of sums: {}", limits_.ordinal, limits_.why_no_sums));
  return kernels_.load(driver_, sources, checker());
}

Result<Queue> CudaDevice::make_queue() {
  CUstream made = nullptr;
  FCCL_TRY(check(is_of_parent() ? CUDA_SUCCESS : driver_.stream_create(&made, CU_STREAM_NON_BLOCKING), "make a stream",
                 "cuStreamCreate"));
  return Queue{made};
}

Result<Mark> CudaDevice::make_mark() {
  CUevent made = nullptr;
  FCCL_TRY(check(is_of_parent() ? CUDA_SUCCESS : driver_.event_create(&made, CU_EVENT_DISABLE_TIMING), "make an event",
                 "cuEventCreate"));
  return Mark{made};
}

void CudaDevice::drop(Queue queue) {
  if (!is_of_parent()) (void)driver_.stream_destroy(stream_of(queue));
}

void CudaDevice::drop(Mark mark) {
  if (!is_of_parent()) (void)driver_.event_destroy(event_of(mark));
}

bool CudaDevice::may_reach(const std::string& bus_id) const {
  CUdevice other = 0;
  if (is_of_parent() || bus_id == limits_.bus_id) return true;
  if (driver_.device_get_by_bus_id(&other, bus_id.c_str()) != CUDA_SUCCESS) return true;
  int reaches = 0;
  return driver_.device_can_access_peer(&reaches, device_, other) != CUDA_SUCCESS || reaches != 0;
}

MemoryPlace CudaDevice::place_of(const void* pointer) const {
  if (is_of_parent()) return MemoryPlace::pageable_host;
  std::array<CUpointer_attribute, 3> which{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                           CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  unsigned type = 0;
  unsigned managed = 0;  // wide enough for a bool or an int, whichever the driver writes
  int ordinal = -1;
  std::array<void*, 3> answers{&type, &managed, &ordinal};
  if (driver_.pointer_get_attributes(static_cast<unsigned>(which.size()), which.data(), answers.data(), address_of(pointer)) !=
      CUDA_SUCCESS)
    return MemoryPlace::pageable_host;
  if (managed != 0) return MemoryPlace::managed;
  if (type == CU_MEMORYTYPE_HOST) return MemoryPlace::pinned_host;
  if (type != CU_MEMORYTYPE_DEVICE) return MemoryPlace::pageable_host;
  return ordinal == limits_.ordinal ? MemoryPlace::this_device : MemoryPlace::other_device;
}

Result<bool> CudaDevice::owns(Queue queue) const {
  if (queue.native == nullptr) return true;
  CUcontext context = nullptr;
  FCCL_TRY(check(is_of_parent() ? CUDA_SUCCESS : driver_.stream_get_context(stream_of(queue), &context),
                 "ask whose a stream is", "cuStreamGetCtx"));
  return context == context_;
}

Result<bool> CudaDevice::is_capturing(Queue queue) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = is_of_parent() ? CUDA_SUCCESS : driver_.stream_is_capturing(stream_of(queue), &status);
  // Returned for the default stream while a stream that synchronizes with it records a graph.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
  FCCL_TRY(check(result, "ask whether a stream records a graph", "cuStreamIsCapturing"));
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Result<bool> CudaDevice::is_idle(Queue queue) const {
  const CUresult result = is_of_parent() ? CUDA_SUCCESS : driver_.stream_query(stream_of(queue));
  if (result == CUDA_ERROR_NOT_READY) return false;
  FCCL_TRY(check(result, "ask whether a stream is idle", "cuStreamQuery"));
  return true;
}

Result<void> CudaDevice::copy(Queue queue, const Copy& copy) {
  if (is_of_parent()) return check(CUDA_SUCCESS, "copy", "");
  if (copy.bytes == 0 || copy.rows == 0) return {};
  const bool is_one_run = copy.rows == 1 || (copy.to_pitch == copy.bytes && copy.from_pitch == copy.bytes);
  if (is_one_run)
    return check(driver_.copy(address_of(copy.to), address_of(copy.from), copy.bytes * copy.rows, stream_of(queue)), "copy",
                 "cuMemcpyAsync");
  if (copy.to_pitch > limits_.most_pitch || copy.from_pitch > limits_.most_pitch)
    return fail(fcclInvalidArgument,
                fmt::format("cannot copy {} rows on GPU {}: their pitches are {} and {} bytes, and it takes at most {}",
                            copy.rows, limits_.ordinal, copy.to_pitch, copy.from_pitch, limits_.most_pitch));
  const CUDA_MEMCPY2D rows = driver_copy(copy);
  return check(driver_.copy_rows(&rows, stream_of(queue)), "copy rows", "cuMemcpy2DAsync");
}

Result<void> CudaDevice::reduce(Queue queue, const Reduction& reduction) {
  if (is_of_parent()) return check(CUDA_SUCCESS, "launch a kernel", "");
  const auto kernel = sum_kernel(reduction);
  const CUfunction found = kernel ? kernels_.of(*kernel) : nullptr;
  if (found == nullptr)
    return fail(fcclInvalidArgument,
                fmt::format("cannot reduce {} sources of {} by {} on GPU {}: no such kernel is loaded",
                            reduction.sources.size(), name_of(reduction.dtype), name_of(reduction.op), limits_.ordinal));
  if (reduction.count == 0) return {};
  gpu::SumWork work = work_of(reduction);
  std::array<void*, 1> parameters{&work};
  return check(driver_.launch_kernel(found, blocks_of(reduction), 1, 1, gpu::kThreadsPerBlock, 1, 1, 0, stream_of(queue),
                                     parameters.data(), nullptr),
               "launch a kernel", "cuLaunchKernel");
}

Result<void> CudaDevice::words(Queue queue, std::span<const WordOperation> operations) {
  if (is_of_parent()) return check(CUDA_SUCCESS, "enqueue words", "");
  if (operations.empty()) return {};
  if (!limits_.waits_for_words || operations.size() > kWordsPerCall)
    return fail(fcclInvalidArgument,
                fmt::format("cannot enqueue {} words on GPU {}: it takes at most {} at a time", operations.size(),
                            limits_.ordinal, limits_.waits_for_words ? kWordsPerCall : 0));
  std::array<CUstreamBatchMemOpParams, kWordsPerCall> batch;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (address_of(operations[i].word) % sizeof(uint64_t) != 0)
      return fail(fcclInvalidArgument, fmt::format("cannot enqueue a word at {} on GPU {}: the address is not a multiple of 8",
                                                   fmt::ptr(operations[i].word), limits_.ordinal));
    batch[i] = driver_operation(operations[i]);
  }
  return check(driver_.stream_batch(stream_of(queue), static_cast<unsigned>(operations.size()), batch.data(), 0),
               "enqueue words", "cuStreamBatchMemOp");
}

Result<void> CudaDevice::record(Queue queue, Mark mark) {
  if (is_of_parent()) return check(CUDA_SUCCESS, "record an event", "");
  return check(driver_.event_record(event_of(mark), stream_of(queue)), "record an event", "cuEventRecord");
}

Result<void> CudaDevice::await(Queue queue, Mark mark) {
  if (is_of_parent()) return check(CUDA_SUCCESS, "await an event", "");
  return check(driver_.stream_wait_event(stream_of(queue), event_of(mark), 0), "await an event", "cuStreamWaitEvent");
}

Result<std::shared_ptr<Device>> open_device(int ordinal) {
  OpenDevices& open = open_devices.get();
  const std::scoped_lock lock(open.mutex);
  if (const auto found = open.devices.find(ordinal); found != open.devices.end()) return std::shared_ptr<Device>(found->second);
  FCCL_TRY_ASSIGN(const auto driver, cuda_driver());
  FCCL_TRY_ASSIGN(auto opened, CudaDevice::open(*driver, ordinal));
  open.devices.emplace(ordinal, opened);
  return std::shared_ptr<Device>(std::move(opened));
}

int current_device() {
  const auto get_device = reinterpret_cast<decltype(&::cuCtxGetDevice)>(function_of_loaded_driver("cuCtxGetDevice"));
  const auto get_context = reinterpret_cast<decltype(&::cuCtxGetCurrent)>(function_of_loaded_driver("cuCtxGetCurrent"));
  CUcontext context = nullptr;
  if (get_device == nullptr || get_context == nullptr || get_context(&context) != CUDA_SUCCESS || context == nullptr) return -1;
  CUdevice device = -1;
  return get_device(&device) == CUDA_SUCCESS ? device : -1;
}

}  // namespace fccl::core
