// Makes a lane's queues and marks, and counts each entry that it enqueues.
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
  for (const Queue queue : {sums_.queue, queue_})
    if (queue.native != nullptr) device_->drop(queue);
  for (const Mark mark : {forked_, joined_, sums_.done})
    if (mark.native != nullptr) device_->drop(mark);
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

Result<void> DeviceLane::set_landing(std::unique_ptr<LandingSlots> landing, bool adds_apart) {
  landing_ = std::move(landing);
  if (!landing_->is_for_pairs() || !adds_apart) return {};
  FCCL_TRY_ASSIGN(sums_.done, device_->make_mark());
  FCCL_TRY_ASSIGN(sums_.queue, device_->make_queue());
  return {};
}

uint64_t DeviceLane::take_numbers(uint64_t sub_calls) { return std::exchange(taken_.numbers, taken_.numbers + sub_calls) + 1; }

uint64_t DeviceLane::take_steps(uint64_t steps) { return std::exchange(taken_.steps, taken_.steps + steps); }

// Words keep sums back until the other queue has come to the call, but those of a call that has failed keep nothing back.
Result<Queue> DeviceLane::queue_for(On on) {
  if (on == On::queue || sums_.queue.native == nullptr) return queue_;
  if (!std::exchange(sums_.are_ahead, true)) {
    FCCL_TRY(device_->await(sums_.queue, forked_));
    ++enqueued_;
  }
  return sums_.queue;
}

Result<void> DeviceLane::copy(const Copy& copy, On on) {
  FCCL_TRY_ASSIGN(const Queue queue, queue_for(on));
  FCCL_TRY(device_->copy(queue, copy));
  ++enqueued_;
  return {};
}

Result<void> DeviceLane::reduce(const Reduction& reduction) {
  FCCL_TRY_ASSIGN(const Queue queue, queue_for(On::sums));
  FCCL_TRY(device_->reduce(queue, reduction));
  ++enqueued_;
  return {};
}

Result<void> DeviceLane::enqueue(std::initializer_list<WordOperation> operations, On on) {
  FCCL_TRY_ASSIGN(const Queue queue, queue_for(on));
  FCCL_TRY(device_->words(queue, {operations.begin(), operations.size()}));
  enqueued_ += operations.size();
  return {};
}

Result<void> DeviceLane::join_sums() {
  if (!std::exchange(sums_.are_ahead, false)) return {};
  FCCL_TRY(device_->record(sums_.queue, sums_.done));
  FCCL_TRY(device_->await(queue_, sums_.done));
  enqueued_ += 2;
  return {};
}

Result<void> DeviceLane::write_drained() {
  FCCL_TRY(join_sums());
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
  FCCL_TRY(join_sums());
  FCCL_TRY(device_->record(queue_, joined_));
  ++enqueued_;
  return device_->await(user, joined_);
}

Result<void> DeviceLane::end(Mark mark) {
  FCCL_TRY(join_sums());
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

Result<bool> DeviceLane::is_idle() const {
  for (const Queue queue : {queue_, sums_.queue}) {
    if (queue.native == nullptr) continue;
    FCCL_TRY_ASSIGN(const bool idle, device_->is_idle(queue));
    if (!idle) return false;
  }
  return true;
}

void DeviceLane::see_idle() {
  sums_.are_ahead = false;
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
