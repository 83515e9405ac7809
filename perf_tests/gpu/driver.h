// GpuDriver: the functions of CUDA's driver that the perf binaries call, found at run time. Like any program that links FCCL,
// the binaries are built without CUDA, so the few types of these functions are declared here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fccl/fccl.hpp"

namespace fccl::perf {

// The result of each function; zero is success.
using GpuResult = int;
inline constexpr GpuResult kGpuNotReady = 600;
inline constexpr unsigned kNonBlockingStream = 1;
// A device pointer as the driver takes it.
using GpuAddress = std::uint64_t;

// Constant once it is loaded; any thread may call it.
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

  // Returns success, or an error with the name of the call and the driver's message.
  Result<void> check(GpuResult result, const std::string& called) const;
};

// Loads and initialises the driver at the process's first call. The error is one sentence: there is no driver, or the machine
// has no GPU.
Result<const GpuDriver*> gpu_driver();

}  // namespace fccl::perf
