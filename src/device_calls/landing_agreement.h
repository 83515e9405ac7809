// LandingAgreement: how the ranks of a host find out whether all can have landing slots of a kind and read those of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/landing.h"
#include "device_calls/own_device.h"
#include "segment/lane_id.h"

namespace fccl::core {

struct CommunicatorState;

// Where slots lie: those for gathers in the memory of GPUs that reach each other, or in host memory; pair slots for reductions
// in the memory of such GPUs.
enum class LandingKind : uint8_t { peer, host, pair };

// What all ranks agree on: slots, or why there are none, in words that are the same on all ranks.
struct LandingFound {
  std::unique_ptr<LandingSlots> slots;
  std::string obstacle;
  int sharing = 1;  // the ranks of this process that have this rank's GPU
};

// The agreement about one lane, between the two meetings around its set-up. All ranks make and use it alike, in the thread that
// issues the lane's first call; the lane is idle.
class LandingAgreement {
 public:
  // `number`: that of the call. `bytes`: of a rank's slots.
  LandingAgreement(OwnDevice& gpu, CommunicatorState& state, LaneId id, uint64_t number, size_t bytes);

  // Each rank says twice how far it has come, since it cannot reach slots that a peer has not made. If one rank cannot have
  // slots, all do without, and none fails. Error: a failure of the communicator.
  Result<LandingFound> find(LandingKind kind, bool waits_for_words);

 private:
  struct Said;
  struct Outcome;

  Result<std::unique_ptr<LandingSlots>> make(LandingKind kind, bool waits_for_words) const;
  Said say(const LandingSlots* slots) const;
  Result<std::vector<Descriptor>> pass(LandingKind kind, const Descriptor& lent);
  Outcome reach_all(LandingKind kind, LandingSlots& slots, const std::vector<Said>& all,
                    const std::vector<Descriptor>& lent) const;
  Outcome why_no_slots(LandingKind kind) const;
  Outcome obstacle_to(int peer, const Said& said) const;
  int count_sharing(const std::vector<Said>& all) const;
  Result<void> exchange(const void* mine, void* all, size_t bytes);

  OwnDevice& gpu_;
  CommunicatorState& state_;
  LaneId id_;
  uint64_t number_;
  size_t bytes_;
};

}  // namespace fccl::core
