// Operators of the tests' device: memory and copies are its own and run on streams; all else is computed on the CPU.
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_copy_from_and_resize_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <condition_variable>
#include <mutex>

#include "driver.h"
#include "memory.h"
#include "streams.h"

namespace stand_in {
namespace {

using at::Tensor;
using c10::DispatchKeySet;

constexpr DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
             std::optional<at::Device> device, std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(c10::kPrivateUse1));
  return at::detail::empty_generic(size, &allocator(), kKeys, c10::dtype_or_default(type), format);
}

Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> type,
                     std::optional<at::Layout> /*layout*/, std::optional<at::Device> device, std::optional<bool> /*pinned*/) {
  const c10::DeviceGuard guard(device.value_or(c10::kPrivateUse1));
  return at::detail::empty_strided_generic(size, stride, &allocator(), kKeys, c10::dtype_or_default(type));
}

// In as few copies as strides allow, each on the stream.
void copy_elements(const Tensor& from, const Tensor& to) {
  if (from.numel() == 0) return;
  if (from.is_contiguous() && to.is_contiguous()) {
    return copy_bytes(to.data_ptr(), from.data_ptr(), to.nbytes(), !from.is_privateuseone() || !to.is_privateuseone());
  }
  const size_t item = to.itemsize();
  if (from.dim() == 1 && from.is_privateuseone() && from.stride(0) > 0) {
    return copy_rows({to.data_ptr(), to.stride(0) * item}, {from.data_ptr(), from.stride(0) * item}, item, from.numel());
  }
  for (int64_t row = 0; row < from.size(0); ++row) copy_elements(from.select(0, row), to.select(0, row));
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool /*non_blocking*/) {
  const c10::DeviceGuard guard(from.is_privateuseone() ? from.device() : to.device());
  const Tensor spread = from.expand_as(to);
  if (from.scalar_type() == to.scalar_type()) {
    // Memory of the host must be in one piece.
    if (!from.is_privateuseone())
      copy_elements(spread.contiguous(), to);
    else if (to.is_privateuseone())
      copy_elements(spread, to);
    else if (to.is_contiguous())
      copy_elements(spread.contiguous(), to);
    else
      to.copy_(spread.contiguous().to(c10::kCPU));
    return to;
  }
  to.copy_(from.to(c10::kCPU).to(to.scalar_type()).expand_as(to).contiguous());
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

const Tensor& resize(const Tensor& tensor, c10::IntArrayRef size, std::optional<at::MemoryFormat> /*format*/) {
  auto* const self = tensor.unsafeGetTensorImpl();
  self->generic_set_sizes_contiguous(size);
  const size_t wanted = at::detail::computeStorageNbytesContiguous(size, tensor.itemsize(), tensor.storage_offset());
  if (wanted > tensor.storage().nbytes()) at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(tensor.storage(), wanted);
  return tensor;
}

Tensor as_strided(const Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::cpu::as_strided(self, size, stride, offset);
}

Tensor reshape_alias(const Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::cpu::as_strided(self, size, stride, self.storage_offset());
}

Tensor view(const Tensor& self, c10::IntArrayRef size) { return at::native::view(self, size); }

Tensor& set_storage(Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::cpu::set_(self, std::move(source), offset, size, stride);
}

Tensor& set_whole_storage(Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return at::cpu::set_(self, std::move(source), 0, {count}, {1});
}

at::Scalar local_scalar_dense(const Tensor& self) { return self.to(c10::kCPU).item(); }

void compute_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) { at::native::cpu_fallback(op, stack); }

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(device_count()); }
  void setCurrentDevice(c10::DeviceIndex device) const override { use_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = current_device();
    use_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto* const self = storage.unsafeGetStorageImpl();
    c10::DataPtr grown = allocator().allocate(bytes);
    copy_bytes(grown.get(), self->data(), std::min(bytes, self->nbytes()), false);
    self->set_data_ptr_noswap(std::move(grown));
    self->set_nbytes(bytes);
  }
};

// ---- What tests ask for

// Keeps the streams that came to it until released.
struct Gate {
  std::mutex mutex;
  std::condition_variable opened;
  bool closed = false;

  static Gate& of_process() {
    static auto* const gate = new Gate;
    return *gate;
  }
};

void hold() {
  auto& gate = Gate::of_process();
  {
    const std::lock_guard lock(gate.mutex);
    gate.closed = true;
  }
  const auto wait = [](void* /*user_data*/) {
    auto& gate = Gate::of_process();
    std::unique_lock lock(gate.mutex);
    gate.opened.wait(lock, [&] { return !gate.closed; });
  };
  check(driver().launch_host_function(native(current({c10::kPrivateUse1, current_device()})), wait, nullptr),
        "cuLaunchHostFunc");
}

void let_go() {
  auto& gate = Gate::of_process();
  const std::lock_guard lock(gate.mutex);
  gate.closed = false;
  gate.opened.notify_all();
}

void begin_capture() {
  const CUstream stream = native(current({c10::kPrivateUse1, current_device()}));
  check(driver().begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
}

void end_capture() {
  CUgraph graph = nullptr;
  check(driver().end_capture(native(current({c10::kPrivateUse1, current_device()})), &graph), "cuStreamEndCapture");
}

void start() {
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  c10::SetAllocator(c10::kPrivateUse1, &allocator());
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("resize_", resize);
  library.impl("as_strided", as_strided);
  library.impl("view", view);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("_local_scalar_dense", local_scalar_dense);
}

TORCH_LIBRARY(stand_in, library) {
  library.def("start() -> ()", start);
  library.def("hold() -> ()", hold);
  library.def("let_go() -> ()", let_go);
  library.def("begin_capture() -> ()", begin_capture);
  library.def("end_capture() -> ()", end_capture);
  library.def("reused_blocks() -> int", reused_blocks);
  library.def("live_events() -> int", [] { return static_cast<int64_t>(live_events()); });
}

}  // namespace stand_in
