// BouncedCall: the worker's half of a call on GPU memory. It runs each sub-call on host memory once the GPU has brought its
// input, and tells the GPU when its output is there.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "device/lane.h"
#include "device/sub_calls.h"
#include "operations/issued_call.h"

namespace fccl::core {

// Made when the call is issued, then advanced by the worker until it is done or fails. It waits for the GPU without a deadline
// and holds no frame of the lane then: the deadline of a call begins when this rank's own GPU has reached the call. After a
// failure it releases the GPU for good, at once, whether or not the GPU has reached the call.
class BouncedCall final : public StreamItem {
 public:
  // The GPU's half: its device lane, and the number of the first sub-call there.
  struct Program {
    DeviceLane& lane;
    uint64_t first_number;
    bool brings_scalar;
  };

  // The whole call, and how it is cut into sub-calls.
  struct Issued {
    SubCalls calls;
    Task task;
    std::chrono::milliseconds timeout;
  };

  BouncedCall(const CallContext& around, LaneQueue& queue, const Issued& issued, const Program& program);
  BouncedCall(const BouncedCall&) = delete;
  BouncedCall& operator=(const BouncedCall&) = delete;

  Result<Advance> advance() override;
  std::chrono::microseconds yielding() const override;

 private:
  uint64_t number() const { return program_.first_number + part_; }
  Result<Advance> await_gpu();
  void begin();
  Result<Advance> finish_sub_call();
  Error give_up(Error error);
  void release_permanently();

  CallContext around_;
  LaneQueue& queue_;
  Issued issued_;
  Program program_;
  uint64_t first_ticket_;
  uint64_t part_ = 0;
  std::optional<IssuedCall> sub_call_;
};

}  // namespace fccl::core
