// GpuDriver: the functions of CUDA's driver that the perf binaries call, found while they run. Like any program that links
// FCCL they need no CUDA to be built, so the few types of these functions are written here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fccl/fccl.hpp"

namespace fccl::perf {

// What each function returns; zero is success.
using GpuResult = int;
inline constexpr GpuResult kGpuNotReady = 600;
inline constexpr unsigned kNonBlockingStream = 1;
// A device pointer as the driver takes it.
using GpuAddress = std::uint64_t;

// Never changes once it was loaded; any thread.
struct GpuDriver {
  GpuResult (*init)(unsigned flags);
  GpuResult (*error_name)(GpuResult result, const char** name);
  GpuResult (*error_text)(GpuResult result, const char** text);
  GpuResult (*count)(int* gpus);
  GpuResult (*get)(int* device, int ordinal);
  GpuResult (*name)(char* text, int length, int device);
  GpuResult (*bus_id)(char* text, int length, int device);
  GpuResult (*total_bytes)(std::size_t* bytes, int device);
  GpuResult (*retain_context)(void** context, int device);
  GpuResult (*set_current)(void* context);
  GpuResult (*allocate)(GpuAddress* address, std::size_t bytes);
  GpuResult (*free)(GpuAddress address);
  GpuResult (*copy_in)(GpuAddress to, const void* from, std::size_t bytes);
  GpuResult (*copy_out)(void* to, GpuAddress from, std::size_t bytes);
  GpuResult (*make_stream)(void** stream, unsigned flags);
  GpuResult (*drop_stream)(void* stream);
  GpuResult (*query_stream)(void* stream);
  GpuResult (*finish_stream)(void* stream);

  // Success, or an error that says what was called and what the driver said of it.
  Result<void> check(GpuResult result, const std::string& called) const;
};

// Loads and initialises the driver at the first call of the process. The error is one sentence: there is no driver, or no GPU.
Result<const GpuDriver*> gpu_driver();

}  // namespace fccl::perf
