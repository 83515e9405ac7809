// LandedCall: the worker's half of a call by landing slots. It lets the ranks meet, then passes on to the peers how far this
// rank's GPU is, and to the GPU how far all ranks are. It copies nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "device/lane.h"
#include "host/lane.h"
#include "operations/issued_call.h"

namespace fccl::core {

// Made when the call is issued, then advanced by the worker until it is done or fails. As a BouncedCall it waits for the GPU
// without a deadline and holds no frame of the lane then, and releases the GPU for good after a failure. The GPU reads no
// peer's slot before all ranks have entered the same call (decision 1): it waits for the word that only this object writes.
class LandedCall final : public StreamItem {
 public:
  // The GPU's half: its lane, the call's number there, and its steps, which are numbered over all calls.
  struct Program {
    DeviceLane& lane;
    uint64_t number;
    uint64_t first_step;
    uint64_t steps;
    size_t path;         // its name in metrics
    bool brings_scalar;  // this rank's factor is in the lane's words when the GPU has come to the call
  };

  LandedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout,
             const Program& program);
  LandedCall(const LandedCall&) = delete;
  LandedCall& operator=(const LandedCall&) = delete;

  Result<Advance> advance() override;
  std::chrono::microseconds yielding() const override;

 private:
  enum class State : uint8_t { awaits_gpu, enters, steps };
  // How far this rank, and the least of all ranks, is with one of the two things that a step is made of.
  struct Stage {
    uint64_t mine = 0;
    uint64_t all = 0;
  };

  Result<Advance> await_gpu();
  Result<Advance> enter();
  void take_factors();
  Result<Advance> pass_on();
  uint64_t steps_in(uint64_t counted, uint64_t first) const;
  bool hear_own(Stage& stage, const DeviceWord& word, Counter& board) const;
  bool hear_all(Stage& stage, Awaited (Lane::*counter)(int, uint64_t) const, DeviceWord& word) const;
  Awaited late_peer(const Stage& stage, Awaited (Lane::*counter)(int, uint64_t) const) const;
  Result<Advance> look();
  Advance finish();
  Error give_up(Error error);
  void release_permanently();

  CallContext around_;
  LaneQueue& queue_;
  Task task_;
  Program program_;
  Wait wait_;
  uint64_t first_ticket_;
  std::optional<IssuedCall> entry_;
  State state_ = State::awaits_gpu;
  uint64_t first_slice_ = 0;
  Stage done_, taken_;
  Clock::time_point began_{};
  Clock::time_point next_look_{};
};

}  // namespace fccl::core
