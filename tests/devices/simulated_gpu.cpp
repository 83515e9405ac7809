// SimulatedGpu: a Gpu by the contract of Device.
#include "devices/simulated_gpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "device/reduction.h"
#include "devices/lent_memory.h"
#include "devices/sums.h"

namespace fccl::core::simulated {

namespace {

[[noreturn]] void end_with(const std::string& sentence) {
  std::fprintf(stderr, "misuse of a simulated GPU: %s\n", sentence.c_str());
  std::abort();
}

// Makes the GPU current for what a test does as its user.
class Current {
 public:
  explicit Current(Gpu& gpu) { GpuContext::push_current(&gpu, GpuContext::Caller::test); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() { GpuContext::pop_current(); }
};

class SimulatedPinnedMemory : public PinnedMemory {
 public:
  SimulatedPinnedMemory(Gpu& gpu, std::span<std::byte> memory, std::byte* address)
      : gpu_(gpu), memory_(memory), address_(address) {}
  ~SimulatedPinnedMemory() override {
    const Current current(gpu_);
    if (const auto unpinned = gpu_.memory().unpin(memory_.data()); !unpinned) end_with(unpinned.error().sentence);
  }
  std::byte* device_address(const void* host) const override {
    return address_ + (static_cast<const std::byte*>(host) - memory_.data());
  }

 private:
  Gpu& gpu_;
  std::span<std::byte> memory_;
  std::byte* address_;
};

std::string bus_id_of(int ordinal) { return fmt::format("0000:{:02x}:00.0", 0x10 + ordinal); }

Region::Kind kind_of(MemoryPlace place) {
  switch (place) {
    case MemoryPlace::managed:
      return Region::Kind::managed;
    case MemoryPlace::pinned_host:
      return Region::Kind::pinned;
    default:
      return Region::Kind::device;
  }
}

}  // namespace

SimulatedGpu::SimulatedGpu(const GpuOptions& options) : gpu_(options) {
  limits_.name = fmt::format("simulated GPU {}", options.ordinal);
  limits_.bus_id = bus_id_of(options.ordinal);
  limits_.identity = fmt::format("simulated-{}-{}", ::getpid(), options.ordinal);
  limits_.ordinal = options.ordinal;
  limits_.waits_for_words = options.waits_for_words;
  limits_.words_per_call = options.words_per_call;
  limits_.queue_entries = options.queue_entries;
  limits_.most_pitch = options.most_pitch;
  limits_.pins_read_only = options.pins_read_only;
  limits_.lends = options.lends;
  if (!options.sums) limits_.why_no_sums = "FCCL was built without nvcc";
  limits_.is_part_of_gpu = options.is_part_of_gpu;
}

Error SimulatedGpu::error_of(const Refusal& refusal) const {
  if (refusal.is_misuse() && gpu_.options().abort_on_misuse) end_with(refusal.sentence);
  return {refusal.is_misuse() ? fcclInvalidArgument : fcclUnhandledCudaError, refusal.sentence};
}

template <class T>
T SimulatedGpu::expect(Answer<T> answer) const {
  if (!answer) end_with(answer.error().sentence);
  if constexpr (!std::is_void_v<T>) return *answer;
}

template <class Call>
auto SimulatedGpu::on_queue(Queue queue, Call call) const {
  const auto found = gpu_.queue_of(queue.native);
  using Given = decltype(call(*found));
  using Wanted = Result<typename Given::value_type>;
  if (!found) return Wanted(fail(error_of(found.error())));
  const Given answer = call(*found);
  if (!answer) return Wanted(fail(error_of(answer.error())));
  if constexpr (std::is_void_v<typename Given::value_type>) {
    return Wanted();
  } else {
    return Wanted(*answer);
  }
}

Result<void> SimulatedGpu::enter() {
  GpuContext::push_current(&gpu_);
  return {};
}

void SimulatedGpu::leave() {
  if (GpuContext::pop_current() != &gpu_) end_with("a Use ended that was not the thread's last one");
}

Result<std::unique_ptr<PinnedMemory>> SimulatedGpu::pin(std::span<std::byte> memory) {
  const auto address = gpu_.memory().pin(memory);
  if (!address) return fail(error_of(address.error()));
  return std::make_unique<SimulatedPinnedMemory>(gpu_, memory, *address);
}

Result<std::unique_ptr<PinnedMemory>> SimulatedGpu::pin_read_only(std::span<const std::byte> memory) {
  const std::span pages(const_cast<std::byte*>(memory.data()), memory.size());
  const auto address = gpu_.memory().pin(pages, GpuMemory::Pins::read_only);
  if (!address) return fail(error_of(address.error()));
  return std::make_unique<SimulatedPinnedMemory>(gpu_, pages, *address);
}

Result<std::unique_ptr<DeviceMemory>> SimulatedGpu::make_memory(size_t bytes) {
  auto made = LentMemory::make(gpu_, bytes);
  if (!made) return fail(error_of(made.error()));
  return std::move(*made);
}

Result<Descriptor> SimulatedGpu::lend(const DeviceMemory& memory) {
  auto lent = static_cast<const LentMemory&>(memory).lend(gpu_);
  if (!lent) return fail(error_of(lent.error()));
  return std::move(*lent);
}

Result<std::unique_ptr<DeviceMemory>> SimulatedGpu::borrow(const Descriptor& lent, size_t bytes, Access access) {
  auto borrowed = LentMemory::borrow(gpu_, lent.get(), bytes, access);
  if (!borrowed) return fail(error_of(borrowed.error()));
  return std::move(*borrowed);
}

Result<void> SimulatedGpu::share(const DeviceMemory& memory, Access access) {
  const auto shared = static_cast<const LentMemory&>(memory).share_with(gpu_, access);
  if (!shared) return fail(error_of(shared.error()));
  return {};
}

Result<void> SimulatedGpu::load(size_t sources) {
  if (!limits_.why_no_sums.empty()) return fail(fcclSystemError, limits_.name + " has no kernels of sums");
  for (size_t kernel = 0; kernel < kSumKernels; ++kernel) {
    if (sources_of_sum_kernel(kernel) != sources) continue;
    const auto loaded = gpu_.load(find_sum(name_of_sum_kernel(kernel))->number());
    if (!loaded) return fail(error_of(loaded.error()));
  }
  return {};
}

Result<Queue> SimulatedGpu::make_queue() {
  const auto made = gpu_.make_queue();
  if (!made) return fail(error_of(made.error()));
  return Queue{*made};
}

Result<Mark> SimulatedGpu::make_mark() {
  const auto made = gpu_.make_mark();
  if (!made) return fail(error_of(made.error()));
  return Mark{*made};
}

void SimulatedGpu::drop(Queue queue) {
  (void)on_queue(queue, [this](GpuQueue* found) { return gpu_.drop(found); });
}

void SimulatedGpu::drop(Mark mark) {
  if (const auto dropped = gpu_.drop(static_cast<GpuMark*>(mark.native)); !dropped) (void)error_of(dropped.error());
}

bool SimulatedGpu::may_reach(const std::string& bus_id) const {
  for (int ordinal = 0; ordinal < 64; ++ordinal)
    if (bus_id == bus_id_of(ordinal)) return (gpu_.options().cannot_reach >> ordinal & 1) == 0;
  return true;
}

MemoryPlace SimulatedGpu::place_of(const void* pointer) const {
  Region region;
  if (!find_region(pointer, region)) return MemoryPlace::pageable_host;
  using enum Region::Kind;
  switch (region.kind) {
    case device:
    case piece:
      return region.gpu == &gpu_ ? MemoryPlace::this_device : MemoryPlace::other_device;
    case managed:
      return MemoryPlace::managed;
    case pinned:
    case registered:
    case device_address:
      return MemoryPlace::pinned_host;
    default:
      return MemoryPlace::pageable_host;
  }
}

Result<bool> SimulatedGpu::owns(Queue queue) const {
  if (reinterpret_cast<uintptr_t>(queue.native) <= 2) return true;
  return gpu_.queue_of(queue.native).has_value();
}

Result<bool> SimulatedGpu::is_capturing(Queue queue) const {
  return on_queue(queue, [this](GpuQueue* found) { return gpu_.is_capturing(found); });
}

Result<bool> SimulatedGpu::is_idle(Queue queue) const {
  return on_queue(queue, [this](GpuQueue* found) { return gpu_.is_idle(found); });
}

Result<void> SimulatedGpu::copy(Queue queue, const Copy& copy) {
  return on_queue(queue, [&](GpuQueue* found) { return gpu_.copy(found, copy); });
}

Result<void> SimulatedGpu::reduce(Queue queue, const Reduction& reduction) {
  const auto kernel = sum_kernel(reduction);
  if (!kernel)
    return fail(error_of({Refusal::Why::invalid, limits_.name + " was given a reduction for which there is no kernel"}));
  if (reduction.count == 0) return {};
  const SumKernel& sum = *find_sum(name_of_sum_kernel(*kernel));
  return on_queue(queue, [&](GpuQueue* found) { return simulated::launch(gpu_, found, sum, work_of(reduction)); });
}

Result<void> SimulatedGpu::words(Queue queue, std::span<const WordOperation> operations) {
  return on_queue(queue, [&](GpuQueue* found) { return gpu_.words(found, operations); });
}

Result<void> SimulatedGpu::record(Queue queue, Mark mark) {
  return on_queue(queue, [&](GpuQueue* found) { return gpu_.record(found, static_cast<GpuMark*>(mark.native)); });
}

Result<void> SimulatedGpu::await(Queue queue, Mark mark) {
  return on_queue(queue, [&](GpuQueue* found) { return gpu_.await(found, static_cast<GpuMark*>(mark.native)); });
}

std::byte* SimulatedGpu::allocate(MemoryPlace place, size_t bytes) {
  const Current current(gpu_);
  return expect(gpu_.memory().allocate(kind_of(place), bytes));
}

void SimulatedGpu::free(std::byte* memory) {
  const Current current(gpu_);
  expect(gpu_.memory().free(memory));
}

void SimulatedGpu::write(std::byte* to, std::span<const std::byte> from) { std::ranges::copy(from, real(to)); }

void SimulatedGpu::read(const std::byte* from, std::span<std::byte> to) { std::copy_n(real(from), to.size(), to.begin()); }

Queue SimulatedGpu::make_user_queue() {
  const Current current(gpu_);
  return {expect(gpu_.make_queue())};
}

Mark SimulatedGpu::make_user_mark() {
  const Current current(gpu_);
  return {expect(gpu_.make_mark())};
}

void SimulatedGpu::launch(Queue queue, std::function<void()> kernel) {
  const Current current(gpu_);
  const size_t number = kernel.target_type().hash_code();
  expect(gpu_.launch(expect(gpu_.queue_of(queue.native)), number, std::move(kernel)));
}

void SimulatedGpu::load(const std::function<void()>& kernel) {
  const Current current(gpu_);
  expect(gpu_.load(kernel.target_type().hash_code()));
}

void SimulatedGpu::begin_capture(Queue queue) {
  const Current current(gpu_);
  expect(gpu_.set_capturing(expect(gpu_.queue_of(queue.native)), true));
}

void SimulatedGpu::end_capture(Queue queue) {
  const Current current(gpu_);
  expect(gpu_.set_capturing(expect(gpu_.queue_of(queue.native)), false));
}

void SimulatedGpu::synchronize(Queue queue) {
  const Current current(gpu_);
  expect(gpu_.synchronize(expect(gpu_.queue_of(queue.native))));
}

void SimulatedGpu::stop() { gpu_.progress().stopped.store(true, kRelaxed); }

void SimulatedGpu::go_on() { gpu_.progress().stopped.store(false, kRelaxed); }

void SimulatedGpu::break_down() { gpu_.progress().broken.store(true, kRelaxed); }

uint64_t SimulatedGpu::operations() const { return gpu_.progress().begun.load(kRelaxed); }

uint64_t SimulatedGpu::most_outstanding(Queue queue) const {
  const auto found = gpu_.queue_of(queue.native);
  return found ? (*found)->most_outstanding.load(kRelaxed) : 0;
}

bool SimulatedGpu::is_doing_nothing() const {
  return gpu_.progress().enqueued.load(kRelaxed) == gpu_.progress().finished.load(kRelaxed);
}

}  // namespace fccl::core::simulated
