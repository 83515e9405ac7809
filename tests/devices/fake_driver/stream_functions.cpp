// The fake driver: streams, events, and what is enqueued.
#include <fmt/format.h>

#include <vector>

#include "devices/fake_driver/state.h"

using fccl::core::Copy;
using fccl::core::WordOperation;
using fccl::core::simulated::Answer;
using fccl::core::simulated::bytes_at;
using fccl::core::simulated::fake_driver;
using fccl::core::simulated::find_region;
using fccl::core::simulated::give;
using fccl::core::simulated::Gpu;
using fccl::core::simulated::GpuContext;
using fccl::core::simulated::GpuMark;
using fccl::core::simulated::GpuQueue;
using fccl::core::simulated::is_prohibited;
using fccl::core::simulated::on_current;
using fccl::core::simulated::on_stream;
using fccl::core::simulated::Region;
using fccl::core::simulated::result_of;

namespace {

GpuMark* mark_of(CUevent event) { return reinterpret_cast<GpuMark*>(event); }

// False for what the library and its users do not ask for.
bool understand(const CUstreamBatchMemOpParams& given, WordOperation& operation) {
  if (given.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 && given.writeValue.flags == CU_STREAM_WRITE_VALUE_DEFAULT) {
    operation = {WordOperation::Kind::write, bytes_at(given.writeValue.address), given.writeValue.value64};
    return true;
  }
  if (given.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 && given.waitValue.flags == CU_STREAM_WAIT_VALUE_GEQ) {
    operation = {WordOperation::Kind::wait_for, bytes_at(given.waitValue.address), given.waitValue.value64};
    return true;
  }
  return false;
}

CUresult do_words(CUstream stream, const std::vector<WordOperation>& operations) {
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.words(queue, operations)); });
}

}  // namespace

extern "C" {

// A program that defines it hears of each copy on a stream, on the thread that enqueues it.
[[gnu::weak]] void fake_driver_sees_copy();

CUresult cuStreamCreate(CUstream* stream, unsigned /*flags*/) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_current([&](Gpu& gpu) {
    const Answer<GpuQueue*> made = gpu.make_queue();
    if (made) *stream = reinterpret_cast<CUstream>(*made);
    return result_of(made);
  });
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int /*priority*/) {
  return cuStreamCreate(stream, flags);
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return fake_driver() == nullptr ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return on_stream(stream, [](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.drop(queue)); });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  Gpu* gpu = GpuContext::current();
  if (reinterpret_cast<uintptr_t>(stream) > 2) {
    Region region;
    if (!find_region(stream, region) || region.kind != Region::Kind::queue) return CUDA_ERROR_INVALID_HANDLE;
    gpu = region.gpu;
  }
  if (gpu == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = reinterpret_cast<CUcontext>(gpu);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  CUcontext context = nullptr;
  const CUresult found = cuStreamGetCtx(stream, &context);
  if (found == CUDA_SUCCESS) *device = reinterpret_cast<Gpu*>(context)->options().ordinal;
  return found;
}

CUresult cuStreamQuery(CUstream stream) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_stream(stream, [](Gpu& gpu, GpuQueue* queue) {
    const Answer<bool> idle = gpu.is_idle(queue);
    if (!idle) return result_of(idle);
    return *idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_stream(stream, [](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.synchronize(queue)); });
}

CUresult cuCtxSynchronize() {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_current([](Gpu& gpu) { return result_of(gpu.synchronize_all()); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned /*flags*/) {
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.await(queue, mark_of(event))); });
}

CUresult cuEventCreate(CUevent* event, unsigned /*flags*/) {
  return on_current([&](Gpu& gpu) {
    const Answer<GpuMark*> made = gpu.make_mark();
    if (made) *event = reinterpret_cast<CUevent>(*made);
    return result_of(made);
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return on_current([&](Gpu& gpu) { return result_of(gpu.drop(mark_of(event))); });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.record(queue, mark_of(event))); });
}

CUresult cuEventQuery(CUevent event) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_current([&](Gpu& gpu) {
    const Answer<bool> done = gpu.is_done(mark_of(event));
    if (!done) return result_of(done);
    return *done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_current([&](Gpu& gpu) { return result_of(gpu.synchronize(mark_of(event))); });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent from, CUevent to) {
  return on_current([&](Gpu& gpu) {
    const Answer<double> seconds = gpu.seconds_between(mark_of(from), mark_of(to));
    if (seconds) *milliseconds = static_cast<float>(*seconds * 1e3);
    return result_of(seconds);
  });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (fake_driver_sees_copy != nullptr) fake_driver_sees_copy();
  const Copy copy{bytes_at(to), bytes_at(from), bytes};
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.copy(queue, copy)); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return cuMemcpyAsync(to, reinterpret_cast<CUdeviceptr>(from), bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), from, bytes, stream);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* given, CUstream stream) {
  const bool plain = given->srcMemoryType == CU_MEMORYTYPE_UNIFIED && given->dstMemoryType == CU_MEMORYTYPE_UNIFIED &&
                     given->srcXInBytes == 0 && given->srcY == 0 && given->dstXInBytes == 0 && given->dstY == 0;
  if (!plain) return CUDA_ERROR_NOT_SUPPORTED;
  const Copy copy{bytes_at(given->dstDevice),
                  bytes_at(given->srcDevice),
                  given->WidthInBytes,
                  given->Height,
                  given->dstPitch,
                  given->srcPitch};
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.copy(queue, copy)); });
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams* given, unsigned flags) {
  std::vector<WordOperation> operations(count);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (!understand(given[i], operations[i])) return CUDA_ERROR_INVALID_VALUE;
  }
  return do_words(stream, operations);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned flags) {
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_NOT_SUPPORTED;
  return do_words(stream, {{WordOperation::Kind::wait_for, bytes_at(word), value}});
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned flags) {
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_NOT_SUPPORTED;
  return do_words(stream, {{WordOperation::Kind::write, bytes_at(word), value}});
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  return on_stream(stream,
                   [&](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.launch(queue, [=] { function(argument); })); });
}

}  // extern "C"
