// Finds the driver while the program runs, and turns its errors into text.
#include "first_minute/bare_driver.h"

#include <sys/mman.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

namespace fccl::gpu::bare {

namespace {

using namespace std::chrono_literals;

CUcontext context = nullptr;

void* library() {
  static void* const found = dlopen("libcuda.so.1", RTLD_NOW);
  return found;
}

}  // namespace

void* find(const char* name) {
  if (library() == nullptr) throw Unsupported("a GPU: there is no driver");
  void* const found = dlsym(library(), name);
  if (found == nullptr) throw Unsupported(std::string(name) + ", which this driver does not have");
  return found;
}

std::string text_of(CUresult result) {
  const char* name = nullptr;
  BARE(cuGetErrorName)(result, &name);
  return name != nullptr ? name : "CUresult " + std::to_string(static_cast<int>(result));
}

void must(CUresult result, const char* called) {
  if (result == CUDA_SUCCESS) return;
  throw std::runtime_error(std::string(called) + " said " + text_of(result));
}

void open() {
  if (context == nullptr) {
    const CUresult begun = BARE(cuInit)(0);
    if (begun == CUDA_ERROR_NO_DEVICE) throw Unsupported("a GPU: the driver says that there is none");
    must(begun, "cuInit");
    CUdevice device = 0;
    MUST(BARE(cuDeviceGet)(&device, 0));
    MUST(BARE(cuDevicePrimaryCtxRetain)(&context, device));
  }
  MUST(BARE(cuCtxPushCurrent)(context));
}

int attribute(CUdevice_attribute which) {
  int value = -1;
  return BARE(cuDeviceGetAttribute)(&value, which, 0) == CUDA_SUCCESS ? value : -1;
}

CUstream make_stream(int priority) {
  CUstream made = nullptr;
  if (priority == 0) {
    MUST(BARE(cuStreamCreate)(&made, CU_STREAM_NON_BLOCKING));
  } else {
    MUST(BARE(cuStreamCreateWithPriority)(&made, CU_STREAM_NON_BLOCKING, priority));
  }
  return made;
}

CUdeviceptr device_memory(size_t bytes) {
  CUdeviceptr made = 0;
  MUST(BARE(cuMemAlloc)(&made, bytes));
  return made;
}

std::byte* pages(size_t bytes, int protection, int file) {
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const made = ::mmap(nullptr, bytes, protection, flags, file, 0);
  if (made == MAP_FAILED) throw std::runtime_error("mmap failed");
  return static_cast<std::byte*>(made);
}

Pinned::Pinned(size_t bytes) : host_(pages(bytes, PROT_READ | PROT_WRITE)) {
  MUST(BARE(cuMemHostRegister)(host_, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
  MUST(BARE(cuMemHostGetDevicePointer)(&device_, host_, 0));
}

CUresult enqueue(CUstream stream, const std::vector<Operation>& operations) {
  std::vector<CUstreamBatchMemOpParams> batch(operations.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    std::memset(&batch[i], 0, sizeof(batch[i]));
    const Operation& operation = operations[i];
    if (operation.waits) {
      batch[i].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
      batch[i].waitValue.address = operation.word;
      batch[i].waitValue.value64 = operation.value;
    } else {
      batch[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
      batch[i].writeValue.address = operation.word;
      batch[i].writeValue.value64 = operation.value;
    }
  }
  return BARE(cuStreamBatchMemOp)(stream, static_cast<unsigned>(batch.size()), batch.data(), 0);
}

CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return BARE(cuMemcpyAsync)(to, from, bytes, stream);
}

double ms_since(Clock::time_point from) { return seconds_since(from) * 1e3; }

bool happens(double ms, const std::function<bool()>& what) {
  const auto begin = Clock::now();
  while (!what()) {
    if (ms_since(begin) > ms) return false;
    std::this_thread::sleep_for(20us);
  }
  return true;
}

bool drains(CUstream stream, double ms) {
  return happens(ms, [&] { return BARE(cuStreamQuery)(stream) != CUDA_ERROR_NOT_READY; });
}

std::string returns(const std::function<CUresult()>& call, const std::function<void()>& release) {
  std::atomic<bool> done{false};
  CUresult result{};
  double ms = 0;
  const auto begin = Clock::now();
  std::thread thread([&] {
    open();
    result = call();
    ms = ms_since(begin);
    done = true;
  });
  const bool in_time = happens(1000, [&] { return done.load(); });
  release();
  thread.join();
  if (!in_time) return "BLOCKED until the stream was released: " + text_of(result);
  return text("returned in %.2f ms: ", ms) + text_of(result);
}

CUresult in_another_thread(const std::function<CUresult()>& call) {
  CUresult result{};
  std::thread([&] {
    open();
    result = call();
  }).join();
  return result;
}

std::string text(const char* format, ...) {
  std::array<char, 300> written{};
  va_list rest;
  va_start(rest, format);
  std::vsnprintf(written.data(), written.size(), format, rest);
  va_end(rest);
  return written.data();
}

void answer(Rank& rank, std::string what, std::string note) { rank.report(works(std::move(what), true, std::move(note))); }

}  // namespace fccl::gpu::bare
