// WireEntries: the calls of a wire lane, which its members announce to each other by entries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/signature.h"
#include "waiting/counter.h"

namespace fccl::core {

struct EntryBox;
class WireLane;

// The owner of the lane owns it, and the thread that runs the lane's current phase uses it. No function waits. A call may be
// entered when the lane has connected all members.
class WireEntries {
 public:
  // The caller keeps `lane` alive longer than this; nothing else announces calls on it.
  explicit WireEntries(WireLane& lane);

  // Announces a call: begin starts it here, and enter tells each peer, with the first `bytes` of the payload that the caller
  // has put into the peer's place. The place is free once may_enter is reached; it has payload_bytes of the lane.
  void begin(const CallInFull& call);
  Awaited may_enter(int member) const;
  std::byte* payload_for(int member) const;
  void enter(int member, size_t bytes);
  bool has_entered(int member) const;
  // After has_entered: tell whether the peer made the same call, its call, and its payload, which stays until the next begin.
  bool agrees(int member) const;
  const CallInFull& call_of(int member) const;
  std::span<const std::byte> payload_of(int member) const;
  // Returns the call of that number if the peer made it on this lane: a rank that made another call of that number, on another
  // lane, may ask. The answer stays, since this lane does not pass that call.
  std::optional<CallInFull> call_numbered(uint64_t number, int member) const;

 private:
  EntryBox& box_of(int member) const;

  WireLane& lane_;
  uint32_t sequence_;
  uint64_t word_ = 0;
  CallInFull call_;
  std::vector<std::array<uint64_t, 2>> posted_;  // by place and parity: entries
};

}  // namespace fccl::core
