// SimulatedGpu: a GPU for tests, worse than any; the Device over a simulated GPU, with what a test does as its user.
//
//   auto gpu = std::make_shared<simulated::SimulatedGpu>(simulated::GpuOptions{.seed = 7});
//   std::byte* input = gpu->allocate(MemoryPlace::this_device, bytes);   // a touch by the host is SIGSEGV
//   gpu->write(input, data);                                       // at once, ordered after nothing
//   Queue stream = gpu->make_user_queue();
//   gpu->launch(stream, [=] { ... simulated::real(input) ... });   // a kernel
//   ... a collective on the stream ...
//   gpu->synchronize(stream);
//   gpu->read(output, data);
//
// devices/installed_gpus.h makes open_device find it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "device/device.h"
#include "devices/gpu.h"

namespace fccl::core::simulated {

// Tests own it, or as a Device, the code that opens it. Everything that it makes must be gone before it.
class SimulatedGpu : public Device {
 public:
  explicit SimulatedGpu(const GpuOptions& options = {});

  const DeviceLimits& limits() const override { return limits_; }
  Result<std::unique_ptr<PinnedMemory>> pin(std::span<std::byte> memory) override;
  Result<std::unique_ptr<PinnedMemory>> pin_read_only(std::span<const std::byte> memory) override;
  Result<std::unique_ptr<DeviceMemory>> make_memory(size_t bytes) override;
  Result<Descriptor> lend(const DeviceMemory& memory) override;
  Result<std::unique_ptr<DeviceMemory>> borrow(const Descriptor& lent, size_t bytes, Access access) override;
  Result<void> share(const DeviceMemory& memory, Access access) override;
  Result<void> load(size_t sources) override;
  Result<Queue> make_queue() override;
  Result<Mark> make_mark() override;
  void drop(Queue queue) override;
  void drop(Mark mark) override;
  bool may_reach(const std::string& bus_id) const override;
  MemoryPlace place_of(const void* pointer) const override;
  Result<bool> owns(Queue queue) const override;
  Result<bool> is_capturing(Queue queue) const override;
  Result<bool> is_idle(Queue queue) const override;
  Result<void> copy(Queue queue, const Copy& copy) override;
  Result<void> reduce(Queue queue, const Reduction& reduction) override;
  Result<void> words(Queue queue, std::span<const WordOperation> operations) override;
  Result<void> record(Queue queue, Mark mark) override;
  Result<void> await(Queue queue, Mark mark) override;

  // ---- What a user of CUDA has beside; any thread may call, without a Use. Never refused by a fault, but by misuse.
  // this_device, managed or pinned_host.
  std::byte* allocate(MemoryPlace place, size_t bytes);
  // Waits for all that is outstanding, and keeps all others waiting that call this GPU.
  void free(std::byte* memory);
  // These do not go through a queue: the caller must know that no queue is using the memory.
  void write(std::byte* to, std::span<const std::byte> from);
  void read(const std::byte* from, std::span<std::byte> to);
  Queue make_user_queue();
  Mark make_user_mark();
  // The kernel is its type, whatever it has captured: two from one place of the source are one. The first launch of it loads
  // it, if nobody did before.
  void launch(Queue queue, std::function<void()> kernel);
  void load(const std::function<void()>& kernel);
  void begin_capture(Queue queue);
  void end_capture(Queue queue);
  void synchronize(Queue queue);

  // ---- Faults and figures, at any time
  // Nothing more is done, and nobody says so, until go_on().
  void stop();
  void go_on();
  // Nothing more is done, and every call returns an error.
  void break_down();
  // The call after so many others returns an error, once: 1 is the next.
  void fail_call_after(uint64_t calls) { gpu_.context().fail_call_after(calls); }
  // Calls by the contract of Device that can fail, so far.
  uint64_t calls() const { return gpu_.context().calls(); }
  // Operations that have begun on any queue.
  uint64_t operations() const;
  uint64_t most_outstanding(Queue queue) const;
  bool is_doing_nothing() const;

 private:
  Result<void> enter() override;
  void leave() override;
  // Aborts on misuse where options say so.
  Error error_of(const Refusal& refusal) const;
  template <class T>
  T expect(Answer<T> answer) const;
  template <class Call>
  auto on_queue(Queue queue, Call call) const;

  mutable Gpu gpu_;
  DeviceLimits limits_;
};

}  // namespace fccl::core::simulated
