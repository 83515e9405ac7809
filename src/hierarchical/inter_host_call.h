// InterHostCall: the network's half of a call between hosts, which goes on whenever somebody polls, and the numbers of slices
// that join it to the host's half.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hierarchical/plan_executor.h"
#include "hierarchical/task.h"
#include "system/counter.h"
#include "system/wait.h"
#include "wire/lane.h"

namespace fccl {

// One lane's; used by the one thread that runs the lane's current call. It never waits and knows no errors: a call that cannot
// go on is given up by whoever waits for it, and then the lane runs no other.
class InterHostCall {
 public:
  explicit InterHostCall(std::unique_ptr<WireLane> lane) : lane_(std::move(lane)) {}

  WireLane& lane() { return *lane_; }
  const WireLane& lane() const { return *lane_; }

  // Memory for pieces that lie in no buffer of the user; until the next call asks.
  std::byte* input_memory(size_t bytes) { return memory(input_, bytes); }
  std::byte* output_memory(size_t bytes) { return memory(output_, bytes); }

  // Begins a call when all ranks of this host are known to have made it. Nothing is sent yet.
  void begin(const WireTask& task);
  // The relay says: the input of so many slices is there; the output of so many has been taken out of its memory.
  void make_ready(uint64_t slices) { ready_ = slices; }
  void release(uint64_t slices) { released_ = slices; }
  // Does what can be done now.
  void poll();
  static void poll_of(void* inter_host_call) { static_cast<InterHostCall*>(inter_host_call)->poll(); }

  // The relay waits until the output of so many slices is there, or their input is no longer needed, or all is done: everything
  // has come, what leaves has been handed to the transport, and every member has made the same call.
  Awaited received(uint64_t slices) const { return {&received_, slices, kWire}; }
  Awaited done(uint64_t slices) const { return {&done_, slices, kWire}; }
  Awaited ended() const { return {&ended_, 1, kWire}; }
  // In place of a rank, since whom the wire waits for changes.
  static constexpr int kWire = -1;

  // A rank that keeps it from going on, and one whose call was found to differ or -1.
  int awaited_rank() const { return lane_->rank_of(awaited_); }
  int differing_rank() const { return differing_ < 0 ? -1 : lane_->rank_of(differing_); }
  CallInFull call_of(int rank) const;

 private:
  static std::byte* memory(std::vector<std::byte>& kept, size_t bytes);
  bool enter();
  bool enter(int member);
  bool read_entries();
  uint64_t room() const;
  void deliver();
  const Collective& row() const { return task_.call.signature.row(); }
  int chunk_for(int member) const;
  int chunk_from(int member) const;
  size_t gather(int chunk, std::byte* into) const;
  void take(int member);
  void reduce();

  std::unique_ptr<WireLane> lane_;
  WireTask task_;
  std::optional<PlanExecutor> executor_;
  std::vector<std::byte> input_, output_, payload_;
  uint64_t ready_ = 0, released_ = 0;
  std::atomic<uint64_t> received_{0}, done_{0}, ended_{1};
  int entered_ = 1, read_ = 1;  // the peers up to that one: told of the call, heard of
  int awaited_ = 0;
  int differing_ = -1;
};

}  // namespace fccl
