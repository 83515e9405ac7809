// DeviceLane: the GPU side of a communicator's lane: its queues, and how far the GPU is with what was enqueued there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/lane_memory.h"

namespace fccl::core {

class LandingSlots;

// Blocks until a lane's queue has room for `entries` entries.
using AwaitRoom = std::function<Result<void>(size_t entries)>;

struct DeviceLaneShape {
  size_t buffer_bytes = 0;    // a multiple of the page size
  int buffers = 1;            // sub-calls use them in turn
  size_t queue_entries = 32;  // the most entries that may be outstanding
};

// A lane with pair slots may have a second queue, for sums, which waits for the user's stream as the first one does; what ends
// a call joins them. On all other lanes the two are one.
//
// The owner makes and destroys a lane under a Use. It destroys a lane that is idle, and retires any other. The issuing
// thread enqueues entries and asks for room. The worker reads `ready` and writes `finished`. After a failure the owner calls
// release_permanently.
class DeviceLane {
 public:
  enum class On : uint8_t { queue, sums };

  static Result<std::unique_ptr<DeviceLane>> make(std::shared_ptr<Device> device, const DeviceLaneShape& shape);
  ~DeviceLane();
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  size_t queue_entries() const { return shape_.queue_entries; }
  LaneMemory& memory() const { return *memory_; }
  LaneWords& words() const { return memory_->words(); }
  // Null if the lane's calls use no landing slots.
  const LandingSlots* landing() const { return landing_.get(); }
  // Gives a lane its slots, and if they are pair slots and `adds_apart`, its queue for sums. A set-up function of the device.
  Result<void> set_landing(std::unique_ptr<LandingSlots> landing, bool adds_apart);

  // ---- On the thread that issues calls
  // Reserves numbers for the sub-calls of a call, and returns the first one.
  uint64_t take_numbers(uint64_t sub_calls);
  // Reserves numbers for the steps of a call, and returns the first one.
  uint64_t take_steps(uint64_t steps);
  size_t outstanding() const { return enqueued_ - words().drained.load(std::memory_order_acquire); }
  bool has_room(size_t entries) const { return outstanding() + entries <= shape_.queue_entries; }
  // Entries that no write of `drained` covers yet.
  size_t unmarked() const { return enqueued_ - marked_; }
  Result<void> copy(const Copy& copy, On on = On::queue);
  // Enqueues a kernel, on the queue for sums.
  Result<void> reduce(const Reduction& reduction);
  // Enqueues operations on words of the lane, as LaneMemory describes them, by one call of the driver.
  Result<void> enqueue(std::initializer_list<WordOperation> operations, On on = On::queue);
  // Enqueues a write of `drained`, which tells the host that all entries up to and including this one are done, sums too.
  Result<void> write_drained();
  // fork makes the queue wait for the user's stream; join makes the user's stream wait for the queue, and for sums.
  Result<void> fork(Queue user);
  Result<void> join(Queue user);
  // In the place of join: sets a mark of the user's, whose stream does not wait.
  Result<void> end(Mark mark);
  // Makes the queue wait for what another lane's last join or end covers.
  Result<void> follow(const DeviceLane& earlier);
  // Marks the end of a program whose first sub-call has this number.
  void end_program(uint64_t first_number);
  // Ends a call whose copies are all on the queue and that gives the worker no sub-calls.
  Result<void> end_copies();

  // Returns true if the GPU has done all entries, by its driver's word.
  Result<bool> is_idle() const;
  // Notes that the lane was seen idle.
  void see_idle();

  // ---- While no thread issues calls
  // Ends every present and future wait for a word.
  void release_permanently();
  // True if the GPU has done all entries whose end the host can see.
  bool is_drained() const;
  // True if the GPU has begun the oldest program that is not done.
  bool has_begun();

 private:
  // Numbers given out so far.
  struct Taken {
    uint64_t numbers = 0;
    uint64_t steps = 0;
  };
  // Of a lane with two queues.
  struct Sums {
    Queue queue;
    Mark done;
    bool are_ahead = false;  // true if the first queue does not wait yet for all that is on this one
  };
  struct Program {
    uint64_t first_number;
    uint64_t drained;  // the value of `drained` when the program is done
  };

  DeviceLane(std::shared_ptr<Device> device, const DeviceLaneShape& shape);
  Result<void> set_up();
  // Returns the queue of an entry that is about to be enqueued.
  Result<Queue> queue_for(On on);
  // Makes the queue wait for the sums that it does not wait for yet.
  Result<void> join_sums();

  std::shared_ptr<Device> device_;
  DeviceLaneShape shape_;
  std::unique_ptr<LaneMemory> memory_;
  std::unique_ptr<LandingSlots> landing_;
  Queue queue_;
  Mark forked_;
  Mark joined_;
  Sums sums_;
  uint64_t enqueued_ = 0;  // the number of entries enqueued so far, on both queues
  uint64_t marked_ = 0;    // the entries that writes of `drained` cover
  Taken taken_;
  std::vector<Program> programs_;  // a ring of the programs that may still run
  uint64_t oldest_ = 0;
  uint64_t newest_ = 0;
};

}  // namespace fccl::core
