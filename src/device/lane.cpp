// Makes a lane's memory and queue, and counts each entry that it enqueues.
#include "device/lane.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "device/landing.h"
#include "os/memory.h"

namespace fccl::core {
namespace {

// The fewest entries of a program.
constexpr size_t kFewestEntries = 4;

// The writer of a word releases it from a wait for any number up to `last`.
void release_for_good(DeviceWord& word, uint64_t last) { release_to_device(word, last + kFarAhead); }

}  // namespace

DeviceLane::DeviceLane(std::shared_ptr<Device> device, const DeviceLaneShape& shape)
    : device_(std::move(device)), shape_(shape), programs_(shape.queue_entries / kFewestEntries + 2) {}

Result<std::unique_ptr<DeviceLane>> DeviceLane::make(std::shared_ptr<Device> device, const DeviceLaneShape& shape) {
  std::unique_ptr<DeviceLane> lane(new DeviceLane(std::move(device), shape));
  FCCL_TRY(lane->reserve());
  FCCL_TRY(lane->set_up());
  return lane;
}

DeviceLane::~DeviceLane() {
  if (queue_.native != nullptr) device_->drop(queue_);
  if (forked_.native != nullptr) device_->drop(forked_);
  if (joined_.native != nullptr) device_->drop(joined_);
  landing_.reset();
  pinned_.reset();
  if (memory_ != nullptr) ::munmap(memory_, memory_bytes());
}

size_t DeviceLane::memory_bytes() const { return kPageBytes + static_cast<size_t>(shape_.buffers) * shape_.buffer_bytes; }

// Uses mmap and not CUDA's allocator, because peers read this memory by process_vm_readv, which the kernel may refuse for a
// driver's pages. A fork does not inherit it: copy-on-write would take the pages from under the GPU.
Result<void> DeviceLane::reserve() {
  const auto failure = [&](const std::string& observed) {
    return fail(fcclSystemError,
                fmt::format("reserving {} bytes of host memory for calls on {} (FCCL_CUDA_BUFFER={}) failed: {}; "
                            "free memory, raise the container's memory limit, or lower FCCL_CUDA_BUFFER",
                            memory_bytes(), device_->limits().name, shape_.buffer_bytes, observed));
  };
  if (const AvailableMemory available = available_memory(); memory_bytes() > available.bytes)
    return failure(fmt::format("only {} bytes are available, as {} says", available.bytes, available.limited_by));
  void* mapped = ::mmap(nullptr, memory_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return failure(std::strerror(errno));
  memory_ = static_cast<std::byte*>(mapped);
  (void)::madvise(memory_, memory_bytes(), MADV_DONTFORK);
  words_ = new (memory_) Words;
  return {};
}

Result<void> DeviceLane::set_up() {
  FCCL_TRY_ASSIGN(auto pinned, device_->pin({memory_, memory_bytes()}));
  pinned_ = std::move(pinned);
  FCCL_TRY_ASSIGN(auto queue, device_->make_queue());
  queue_ = queue;
  for (Mark* mark : {&forked_, &joined_}) {
    FCCL_TRY_ASSIGN(auto made, device_->make_mark());
    *mark = made;
  }
  return {};
}

void DeviceLane::set_landing(std::unique_ptr<LandingSlots> landing) { landing_ = std::move(landing); }

std::byte* DeviceLane::buffer(uint64_t number) const {
  return memory_ + kPageBytes + number % static_cast<uint64_t>(shape_.buffers) * shape_.buffer_bytes;
}

Scalar DeviceLane::scalar(fcclDataType_t dtype) const {
  Scalar brought;
  std::memcpy(&brought.bits, &words_->scalar.bits, size_of(dtype));
  return brought;
}

uint64_t DeviceLane::take_numbers(uint64_t sub_calls) { return std::exchange(taken_.numbers, taken_.numbers + sub_calls) + 1; }

uint64_t DeviceLane::take_steps(uint64_t steps) { return std::exchange(taken_.steps, taken_.steps + steps); }

Result<void> DeviceLane::copy(const Copy& copy) {
  FCCL_TRY(device_->copy(queue_, copy));
  ++enqueued_;
  return {};
}

Result<void> DeviceLane::copy_scalar(const void* from, fcclDataType_t dtype) {
  return copy({device_address(&words_->scalar), static_cast<const std::byte*>(from), size_of(dtype)});
}

void DeviceLane::copy_scalar_on_host(const void* from, fcclDataType_t dtype) {
  std::memcpy(&words_->scalar, from, size_of(dtype));
}

WordOperation DeviceLane::write(DeviceWord& word, uint64_t value) const {
  return {WordOperation::Kind::write, device_address(&word), value};
}

WordOperation DeviceLane::wait(DeviceWord& word, uint64_t value) const {
  return {WordOperation::Kind::wait_for, device_address(&word), value};
}

Result<void> DeviceLane::words(std::span<const WordOperation> operations) {
  FCCL_TRY(device_->words(queue_, operations));
  enqueued_ += operations.size();
  return {};
}

Result<void> DeviceLane::write_ready(uint64_t number) { return words(std::array{write(words_->ready, number)}); }

Result<void> DeviceLane::write_ready_and_await(uint64_t ready, uint64_t finished) {
  return words(std::array{write(words_->ready, ready), wait(words_->finished, finished)});
}

Result<void> DeviceLane::await_finished(uint64_t number) { return words(std::array{wait(words_->finished, number)}); }

Result<void> DeviceLane::write_drained() {
  FCCL_TRY(words(std::array{write(words_->drained, enqueued_ + 1)}));
  marked_ = enqueued_;
  return {};
}

Result<void> DeviceLane::fork(Queue user) {
  FCCL_TRY(device_->record(user, forked_));
  FCCL_TRY(device_->await(queue_, forked_));
  ++enqueued_;
  return {};
}

Result<void> DeviceLane::join(Queue user) {
  FCCL_TRY(device_->record(queue_, joined_));
  ++enqueued_;
  return device_->await(user, joined_);
}

Result<void> DeviceLane::end(Mark mark) {
  for (const Mark each : {joined_, mark}) {
    FCCL_TRY(device_->record(queue_, each));
    ++enqueued_;
  }
  return {};
}

Result<void> DeviceLane::follow(const DeviceLane& earlier) {
  FCCL_TRY(device_->await(queue_, earlier.joined_));
  ++enqueued_;
  return {};
}

void DeviceLane::end_program(uint64_t first_number) {
  (void)has_begun();
  programs_[newest_++ % programs_.size()] = {first_number, marked_};
}

// The GPU has reached everything issued before, so the last number is ready.
Result<void> DeviceLane::end_copies() {
  FCCL_TRY(write_drained());
  end_program(taken_.numbers);
  return {};
}

void DeviceLane::see_idle() {
  marked_ = enqueued_;
  release_to_device(words_->drained, enqueued_);
}

void DeviceLane::release_permanently() {
  release_for_good(words_->finished, taken_.numbers);
  release_for_good(words_->steps.all_done, taken_.steps);
  release_for_good(words_->steps.all_taken, taken_.steps);
}

bool DeviceLane::is_drained() const { return has_come(words_->drained, marked_); }

bool DeviceLane::has_begun() {
  while (oldest_ != newest_ && has_come(words_->drained, programs_[oldest_ % programs_.size()].drained)) ++oldest_;
  return oldest_ != newest_ && has_come(words_->ready, programs_[oldest_ % programs_.size()].first_number);
}

}  // namespace fccl::core
