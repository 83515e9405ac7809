// Gives access to the kind of device that groups serve besides the CPU, through torch's own interface to it: no library of CUDA
// is linked.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <string>

#include "fccl/fccl.h"

namespace fccl::torch {

// Returns CUDA, unless a test has set a device of its own.
c10::DeviceType accelerator();
// For tests, whose device replaces CUDA from now on. Called before the first group.
void stand_in_for_cuda(const std::string& device_type);

// Returns the stream on which the calling thread's work on the device goes.
c10::Stream current_stream(c10::Device device);
// Returns one of torch's streams, which other parts of the program may use, too.
c10::Stream pooled_stream(c10::Device device);
// Returns the stream's handle as the library takes it.
fcclStream_t handle_of(const c10::Stream& stream);
// True if the stream records a graph.
bool is_capturing(const c10::Stream& stream);

// While it lives, its thread may ask the device anything without ending a graph that some thread records: without it even a
// query of another stream's event does, in the capture mode that torch and CUDA use by default.
class CaptureGuard {
 public:
  CaptureGuard();
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;
  ~CaptureGuard();

 private:
  int mode_;
};

// True if the device has reached the event; guards captures.
bool is_done(const c10::Event& event);

}  // namespace fccl::torch
