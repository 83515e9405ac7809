// CudaDriver: the functions of CUDA's driver, looked up at run time so that libfccl does not link to any CUDA library.
#pragma once

#include <cuda.h>

#include "base/result.h"

namespace fccl::core {

// The declared symbol carries the version, such as cuMemHostRegister_v2.
struct CudaDriver {
  decltype(&::cuInit) init;
  decltype(&::cuDriverGetVersion) driver_get_version;
  decltype(&::cuGetErrorName) get_error_name;
  decltype(&::cuGetErrorString) get_error_string;
  decltype(&::cuDeviceGetCount) device_get_count;
  decltype(&::cuDeviceGet) device_get;
  decltype(&::cuDeviceGetName) device_get_name;
  decltype(&::cuDeviceGetAttribute) device_get_attribute;
  decltype(&::cuDeviceGetPCIBusId) device_get_bus_id;
  decltype(&::cuDeviceGetUuid_v2) device_get_uuid;
  decltype(&::cuDeviceGetByPCIBusId) device_get_by_bus_id;
  decltype(&::cuDeviceCanAccessPeer) device_can_access_peer;
  decltype(&::cuDevicePrimaryCtxRetain) primary_context_retain;
  decltype(&::cuCtxPushCurrent_v2) context_push;
  decltype(&::cuCtxPopCurrent_v2) context_pop;
  decltype(&::cuMemHostRegister_v2) host_register;
  decltype(&::cuMemHostUnregister) host_unregister;
  decltype(&::cuMemHostGetDevicePointer_v2) host_get_device_pointer;
  decltype(&::cuPointerGetAttributes) pointer_get_attributes;
  decltype(&::cuMemGetAllocationGranularity) memory_get_granularity;
  decltype(&::cuMemCreate) memory_create;
  decltype(&::cuMemRelease) memory_release;
  decltype(&::cuMemAddressReserve) memory_reserve;
  decltype(&::cuMemAddressFree) memory_free_address;
  decltype(&::cuMemMap) memory_map;
  decltype(&::cuMemUnmap) memory_unmap;
  decltype(&::cuMemSetAccess) memory_set_access;
  decltype(&::cuMemExportToShareableHandle) memory_export;
  decltype(&::cuMemImportFromShareableHandle) memory_import;
  decltype(&::cuStreamCreate) stream_create;
  decltype(&::cuStreamDestroy_v2) stream_destroy;
  decltype(&::cuStreamGetCtx) stream_get_context;
  decltype(&::cuStreamIsCapturing) stream_is_capturing;
  decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
  decltype(&::cuStreamQuery) stream_query;
  decltype(&::cuStreamWaitEvent) stream_wait_event;
  decltype(&::cuEventCreate) event_create;
  decltype(&::cuEventDestroy_v2) event_destroy;
  decltype(&::cuEventRecord) event_record;
  decltype(&::cuMemcpyAsync) copy;
  decltype(&::cuMemcpy2DAsync_v2) copy_rows;
  decltype(&::cuModuleLoadData) module_load_data;
  decltype(&::cuModuleGetFunction) module_get_function;
  decltype(&::cuLaunchKernel) launch_kernel;
  decltype(&::cuFuncLoad) function_load;            // null if the driver is older than CUDA 12.4
  decltype(&::cuStreamBatchMemOp_v2) stream_batch;  // null if the driver is older than CUDA 11.7

  // Returns a text such as "CUDA_ERROR_INVALID_VALUE (invalid argument)".
  std::string text_of(CUresult result) const;
};

// Loads and initialises the driver at the first call in a process. Any thread may call. The error says "no driver" or "no GPU".
Result<const CudaDriver*> cuda_driver();

// Returns a driver function if any code of the process has loaded the driver; never loads it.
void* function_of_loaded_driver(const char* name);

}  // namespace fccl::core
