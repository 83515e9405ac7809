// The kind of device that groups serve beside the CPU, through torch's own interface to it: no library of CUDA is linked.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <string>

#include "fccl/fccl.h"

namespace fccl {

// CUDA, unless a test has brought a device of its own.
c10::DeviceType accelerator();
// For tests, whose device stands in for CUDA's from now on. Before the first group.
void stand_in_for_cuda(const std::string& device_type);

// The calling thread's stream for what it issues on the device.
c10::Stream current_stream(c10::Device device);
// One of torch's streams, which other parts of the program may use too.
c10::Stream pooled_stream(c10::Device device);
// As the library takes it.
fcclStream_t handle_of(const c10::Stream& stream);
// Whether the stream records a graph.
bool is_capturing(const c10::Stream& stream);

// While it lives, what its thread asks of the device ends no graph that any thread records: without it even a query of another
// stream's event does, by the rules of the mode that torch and CUDA take where nobody names one.
class CaptureGuard {
 public:
  CaptureGuard();
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;
  ~CaptureGuard();

 private:
  int mode_;
};

// Whether the device has come to the event; under a guard of captures.
bool is_done(const c10::Event& event);

}  // namespace fccl
