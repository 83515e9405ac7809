// CUDA's driver, under a device of torch that the tests bring: the functions that it needs, found in the process's
// libcuda.so.1.
#pragma once

#include <c10/core/Device.h>
#include <cuda.h>

#include <cstddef>

namespace stand_in {

// Loaded at first use, with every GPU's context; never unloaded. Any thread.
struct Driver {
  decltype(&::cuInit) init;
  decltype(&::cuDeviceGetCount) device_get_count;
  decltype(&::cuDevicePrimaryCtxRetain) retain;
  decltype(&::cuCtxSetCurrent) set_context;
  decltype(&::cuCtxSynchronize) synchronize;
  decltype(&::cuMemAlloc_v2) allocate;
  decltype(&::cuMemcpyAsync) copy;
  decltype(&::cuMemcpy2DAsync_v2) copy_rows;
  decltype(&::cuMemcpy) copy_at_once;
  decltype(&::cuStreamCreate) create_stream;
  decltype(&::cuStreamQuery) query_stream;
  decltype(&::cuStreamSynchronize) synchronize_stream;
  decltype(&::cuStreamWaitEvent) wait_event;
  decltype(&::cuStreamIsCapturing) is_capturing;
  decltype(&::cuStreamBeginCapture_v2) begin_capture;
  decltype(&::cuStreamEndCapture) end_capture;
  decltype(&::cuEventCreate) create_event;
  decltype(&::cuEventDestroy_v2) destroy_event;
  decltype(&::cuEventQuery) query_event;
  decltype(&::cuEventRecord) record_event;
  decltype(&::cuEventSynchronize) synchronize_event;
  decltype(&::cuLaunchHostFunc) launch_host_function;
};

const Driver& driver();
// Throws the driver's refusal of `call`.
void check(CUresult result, const char* call);

int device_count();
// The calling thread's device, whose context is its current one from now on.
c10::DeviceIndex current_device();
void use_device(c10::DeviceIndex device);

}  // namespace stand_in
