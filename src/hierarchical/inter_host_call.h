// InterHostCall: runs the network's half of a call between hosts, on every poll, and counts the slices by which it joins the
// host's half.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hierarchical/entry_exchange.h"
#include "hierarchical/plan_executor.h"
#include "hierarchical/task.h"
#include "waiting/counter.h"
#include "waiting/wait.h"

namespace fccl::core {

class WireLane;

// A lane has one; the one thread that runs the lane's current call uses it. It never waits and reports no errors: a waiting
// relay gives up a call that is stuck, and the lane then runs no other.
class InterHostCall {
 public:
  explicit InterHostCall(std::unique_ptr<WireLane> lane);
  ~InterHostCall();

  WireLane& lane() { return *lane_; }
  const WireLane& lane() const { return *lane_; }
  EntryExchange& exchange() { return exchange_; }
  const WireEntries& entries() const { return exchange_.entries(); }

  // Takes this member's part of the next call, once the last one has ended. A side in staging memory gets that memory here.
  void prepare(const WireTask& task);
  // Return the sides of the prepared call, where the relay puts and takes the pieces.
  const WireSide& input() const { return task_.input; }
  const WireSide& output() const { return task_.output; }
  // Begins the prepared call once all ranks of this host are known to have made it. It does not send yet.
  void begin();
  // The relay announces progress: make_ready, that the input of the first `slices` is there; release, that it has taken the
  // output of the first `slices` out of its memory.
  void make_ready(uint64_t slices) { ready_ = slices; }
  void release(uint64_t slices) { released_ = slices; }
  // Does as much as is possible now.
  void poll();
  static void poll_of(void* inter_host_call) { static_cast<InterHostCall*>(inter_host_call)->poll(); }

  // The relay waits for one of three points: the output of that many slices is there; their input is no longer needed; or the
  // call has ended: every message has arrived, every outgoing one is with the transport, and every member has made the same
  // call.
  Awaited received(uint64_t slices) const { return {&received_, slices, kWire}; }
  Awaited done(uint64_t slices) const { return {&done_, slices, kWire}; }
  Awaited ended() const { return {&ended_, 1, kWire}; }
  // Stands for a rank in waits for the network, since the awaited peer changes.
  static constexpr int kWire = -1;

  // Return a rank that the call waits for, and a rank whose call was found to differ, or -1.
  int awaited_rank() const;
  int differing_rank() const;
  CallInFull call_of(int rank) const;

 private:
  uint64_t room() const;
  void deliver();
  const Collective& row() const { return task_.call.signature.row(); }
  int chunk_from(int member) const;
  void take(int member);
  void reduce();

  std::unique_ptr<WireLane> lane_;
  EntryExchange exchange_;
  WireTask task_;
  std::optional<PlanExecutor> executor_;
  std::vector<std::byte> staged_input_, staged_output_;
  uint64_t ready_ = 0, released_ = 0;
  std::atomic<uint64_t> received_{0}, done_{0}, ended_{1};
};

}  // namespace fccl::core
