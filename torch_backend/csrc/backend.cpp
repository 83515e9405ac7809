// Creates and ends a process group, and sends each of its operations to the CPU's or the device's calls.
#include "backend.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "arena.h"
#include "completions.h"
#include "errors.h"
#include "leaving.h"

namespace fccl::torch {
namespace {

std::shared_ptr<Communicator> communicator_for(fcclMemoryKind_t kind, const char* kind_key, const Membership& membership,
                                               const c10::intrusive_ptr<c10d::Store>& store, const std::string& key) {
  return std::make_shared<Communicator>(membership, store, key + kind_key, kind);
}

std::string word_of_this_rank() {
  std::random_device random;
  return c10::str(random(), "-", random());
}

// Returns the device of all tensors of the operation; the CPU if it has none.
c10::Device device_of(const Operation& operation) {
  std::optional<c10::Device> device;
  for (const auto* tensors : {&operation.inputs, &operation.outputs}) {
    for (const at::Tensor& tensor : *tensors) {
      if (!device) device = tensor.device();
      TORCH_CHECK_VALUE(*device == tensor.device(), operation.title, ": the tensors of a call must be on one device, got ",
                        *device, " and ", tensor.device());
    }
  }
  return device.value_or(c10::kCPU);
}

}  // namespace

Backend::Backend(const Membership& membership, const c10::intrusive_ptr<c10d::Store>& store, const std::string& key)
    : c10d::Backend(membership.rank, membership.size),
      name_(membership.name),
      first_key_(key),
      word_(word_of_this_rank()),
      timeout_(membership.timeout),
      cpu_(std::make_shared<CpuCalls>(communicator_for(fcclMemoryCpu, "cpu", membership, store, key))),
      device_(std::make_shared<DeviceCalls>(communicator_for(fcclMemoryCuda, "cuda", membership, store, key))),
      split_child_(c10::intrusive_ptr<c10d::Backend>()) {}

// Garbage may be collected on any thread, which may hold Python's lock, so a group with outstanding calls shuts down on another
// thread.
Backend::~Backend() {
  if (cpu_->has_outstanding()) {
    Completions::of_process().post([cpu = cpu_] { cpu->shut_down(); });
  } else {
    cpu_->shut_down();
  }
  DeviceCalls::leave(device_);
}

void Backend::connect(c10::Device device) {
  if (device.is_cpu()) return cpu_->connect();
  device_->connect(device);
}

// It returns a new object each time: torch writes the name of a group to be split off into it.
c10::intrusive_ptr<Backend::Options> Backend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>(kBackendName, timeout_.load());
  options->group_name = name_;
  return options;
}

void Backend::setTimeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

c10d::ErrorType Backend::getError() {
  const c10d::ErrorType on_device = device_->communicator().error();
  return on_device == c10d::ErrorType::SUCCESS ? cpu_->communicator().error() : on_device;
}

at::Tensor Backend::allocateTensor(long count, at::TensorOptions options) {  // NOLINT(google-runtime-int)
  TORCH_CHECK_VALUE(options.device().is_cpu(), "fccl allocates tensors of the CPU alone, but one of ", options.device(),
                    " was asked for");
  return arena_tensor(count, options);
}

void Backend::abort() {
  // Both communicators are revoked before either ends: a thread that waits for the one may hold up the end of the other.
  device_->communicator().revoke();
  cpu_->abort();
  device_->abort();
}

void Backend::shutdown() {
  Communicator& used = cpu_->communicator().is_made() ? cpu_->communicator() : device_->communicator();
  const bool together =
      getGroupDesc() == "default_pg" && getSize() > 1 && used.is_made() && getError() == c10d::ErrorType::SUCCESS;
  cpu_->shut_down();
  device_->shut_down();
  if (together) leave_together(used.store(), c10::str("fccl/leaving/", used.identity(), "/"), getRank(), getSize());
}

Backend::WorkPtr Backend::run(Operation operation) {
  const c10::Device device = device_of(operation);
  const auto deadline = deadline_of(operation);
  WorkPtr work = device.is_cpu() ? cpu_->run(std::move(operation), deadline, describe())
                                 : device_->run(operation, device, deadline, describe());
  note(work);
  return work;
}

std::chrono::milliseconds Backend::deadline_of(const Operation& operation) const {
  return operation.timeout > kNoTimeout ? operation.timeout : timeout_.load();
}

Describe Backend::describe() {
  return [this](const Operation& operation) {
    const c10::weak_intrusive_ptr<Backend> group(c10::intrusive_ptr<Backend>::reclaim_copy(this));
    const auto abort_group = [group] {
      if (const auto backend = group.lock()) backend->abort();
    };
    return Description{operation.title, cpu_->communicator().group_text(), operation.type, ++sequence_, abort_group,
                       operation.source};
  };
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
  Operation operation{"fccl:barrier", c10d::OpType::BARRIER, options.asyncOp, options.timeout};
  operation.steps.emplace_back([](fcclComm_t comm, fcclStream_t stream) { return fcclBarrier(comm, stream); });
  std::unique_lock turn(device_->communicator().turn());
  const std::optional<c10::Device> device = device_->device();
  turn.unlock();
  if (!device) return run(std::move(operation));
  // A caller that has passed a barrier expects its earlier operations to be done.
  if (!options.asyncOp) check(cpu_->drain(), cpu_->communicator().attempt_of(operation.title));
  auto work = device_->run(operation, *device, deadline_of(operation), describe());
  if (!options.asyncOp) work->wait();
  return work;
}

}  // namespace fccl::torch
