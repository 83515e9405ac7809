// GpuContext: the stack of GPUs of each thread, and the door that all calls pass.
#include "devices/gpu_context.h"

#include <fmt/format.h>

#include <vector>

namespace fccl::core::simulated {

namespace {

using Why = Refusal::Why;

struct CurrentGpu {
  Gpu* gpu;
  GpuContext::Caller caller;
};
thread_local std::vector<CurrentGpu> current_gpus;

}  // namespace

GpuContext::GpuContext(const Gpu& gpu, const Progress& progress)
    : gpu_(gpu), progress_(progress), fails_call_(progress.options.fails_call) {}

void GpuContext::push_current(Gpu* gpu, Caller caller) { current_gpus.push_back({gpu, caller}); }

Gpu* GpuContext::pop_current() {
  if (current_gpus.empty()) return nullptr;
  Gpu* const last = current_gpus.back().gpu;
  current_gpus.pop_back();
  return last;
}

Gpu* GpuContext::current() { return current_gpus.empty() ? nullptr : current_gpus.back().gpu; }

std::string GpuContext::name() const { return fmt::format("simulated GPU {}", options().ordinal); }

Answer<void> GpuContext::begin_call(const char* call) {
  if (current() != &gpu_)
    return refuse(Why::not_current,
                  fmt::format("{} was called on a thread where {} is not current; hold a Device::Use", call, name()));
  door_.pass();
  if (current_gpus.back().caller == Caller::test) return {};
  if (calls_.fetch_add(1, kRelaxed) + 1 == fails_call_.load(kRelaxed))
    return refuse(Why::injected, fmt::format("{} of {} failed, as the test asked", call, name()));
  if (progress_.broken.load(kRelaxed))
    return refuse(Why::broken, fmt::format("{} found that {} is broken: an earlier operation failed", call, name()));
  return {};
}

Answer<void> GpuContext::begin_set_up(const char* call) {
  if (auto begun = begin_call(call); !begun) return begun;
  if (options().set_up_waits) wait_for_all();
  return {};
}

void GpuContext::wait_for_all() {
  wait_alone([this] { return progress_.enqueued.load(kRelaxed) == progress_.finished.load(kRelaxed); });
}

void GpuContext::wait_alone(const std::function<bool()>& come) {
  door_.shut();
  progress_.wait_until(come);
  door_.open();
}

}  // namespace fccl::core::simulated
