// Makes a lane's queue and marks, and counts each entry that it enqueues.
#include "device/lane.h"

#include <utility>

#include "device/landing.h"

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
  FCCL_TRY(lane->set_up());
  return lane;
}

DeviceLane::~DeviceLane() {
  if (queue_.native != nullptr) device_->drop(queue_);
  if (forked_.native != nullptr) device_->drop(forked_);
  if (joined_.native != nullptr) device_->drop(joined_);
  landing_.reset();
  memory_.reset();
}

Result<void> DeviceLane::set_up() {
  FCCL_TRY_ASSIGN(memory_, LaneMemory::make(device_, shape_.buffer_bytes, shape_.buffers));
  FCCL_TRY_ASSIGN(queue_, device_->make_queue());
  for (Mark* mark : {&forked_, &joined_}) {
    FCCL_TRY_ASSIGN(*mark, device_->make_mark());
  }
  return {};
}

void DeviceLane::set_landing(std::unique_ptr<LandingSlots> landing) { landing_ = std::move(landing); }

uint64_t DeviceLane::take_numbers(uint64_t sub_calls) { return std::exchange(taken_.numbers, taken_.numbers + sub_calls) + 1; }

uint64_t DeviceLane::take_steps(uint64_t steps) { return std::exchange(taken_.steps, taken_.steps + steps); }

Result<void> DeviceLane::copy(const Copy& copy) {
  FCCL_TRY(device_->copy(queue_, copy));
  ++enqueued_;
  return {};
}

Result<void> DeviceLane::reduce(const Reduction& reduction) {
  FCCL_TRY(device_->reduce(queue_, reduction));
  ++enqueued_;
  return {};
}

Result<void> DeviceLane::enqueue(std::initializer_list<WordOperation> operations) {
  FCCL_TRY(device_->words(queue_, {operations.begin(), operations.size()}));
  enqueued_ += operations.size();
  return {};
}

Result<void> DeviceLane::write_drained() {
  FCCL_TRY(enqueue({memory_->write(words().drained, enqueued_ + 1)}));
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
  release_to_device(words().drained, enqueued_);
}

void DeviceLane::release_permanently() {
  release_for_good(words().finished, taken_.numbers);
  release_for_good(words().steps.all_done, taken_.steps);
  release_for_good(words().steps.all_taken, taken_.steps);
}

bool DeviceLane::is_drained() const { return has_come(words().drained, marked_); }

bool DeviceLane::has_begun() {
  while (oldest_ != newest_ && has_come(words().drained, programs_[oldest_ % programs_.size()].drained)) ++oldest_;
  return oldest_ != newest_ && has_come(words().ready, programs_[oldest_ % programs_.size()].first_number);
}

}  // namespace fccl::core
