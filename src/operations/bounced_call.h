// BouncedCall: the worker's half of a call on GPU memory: it runs the sub-calls on host memory, each when the GPU has brought
// its input, and tells the GPU when its output is there.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "device/lane.h"
#include "device/sub_calls.h"
#include "operations/issued_call.h"

namespace fccl {

// Made when the call is issued, then advanced by the worker until it is done or fails. It waits for the GPU without a deadline
// and without a frame of the lane: the deadline of a call begins when this rank's own GPU has come to it. After a failure it
// releases the GPU for good, at once, whether the GPU has come or not.
class BouncedCall {
 public:
  // What the GPU brings: `first_number` of the sub-calls on the device's lane, and whether a factor comes with them.
  struct Program {
    DeviceLane& lane;
    uint64_t first_number;
    bool brings_scalar;
  };

  // The whole call, and how it is cut.
  struct Issued {
    SubCalls calls;
    Task task;
    std::chrono::milliseconds timeout;
  };

  BouncedCall(const CallContext& around, LaneQueue& queue, const Issued& issued, const Program& program);
  BouncedCall(const BouncedCall&) = delete;
  BouncedCall& operator=(const BouncedCall&) = delete;

  // One step as far as it goes without waiting.
  Result<Advance> advance();
  std::chrono::microseconds yielding() const;

 private:
  uint64_t number() const { return program_.first_number + part_; }
  Result<Advance> await_gpu();
  void begin();
  Result<Advance> finish_sub_call();
  Error give_up(Error error);
  void release_for_good();

  CallContext around_;
  LaneQueue& queue_;
  Issued issued_;
  Program program_;
  uint64_t first_ticket_;
  uint64_t part_ = 0;
  std::optional<IssuedCall> sub_call_;
};

}  // namespace fccl
