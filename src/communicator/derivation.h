// Derivation: makes other communicators from one: split, shrink and grow.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

class Communicator;
class DeviceCalls;
class Invitation;
struct Call;
struct CommunicatorState;
struct CreateOptions;
struct UniqueId;

enum class ShrinkAs : uint8_t { healthy, ended };

// The parent communicator owns it. The thread that issues the parent's calls uses it. All functions that make a communicator
// ask `cancel_check` while they wait. If it fails during a call of the parent, or during a split, the parent fails, too.
class Derivation {
 public:
  // `device_calls`: null on CPU memory. `in_call`: the parent's flag.
  Derivation(Communicator& parent, CommunicatorState& state, DeviceCalls* device_calls, std::atomic<bool>& in_call);
  ~Derivation();
  Derivation(const Derivation&) = delete;
  Derivation& operator=(const Derivation&) = delete;

  // Collective: makes this rank's end of the group of its color; nullptr for a color below zero.
  Result<std::unique_ptr<Communicator>> split(int color, int key, const CreateOptions& options,
                                              const CancelCheck& cancel_check = {});
  // Collective over the ranks that `excluded` does not name: makes their new communicator, in the order of their ranks.
  // ShrinkAs::healthy waits until outstanding operations are done; ShrinkAs::ended first ends them, as abort does, and works in
  // any state.
  Result<std::unique_ptr<Communicator>> shrink(const std::vector<int>& excluded, ShrinkAs as, const CreateOptions& options,
                                               const CancelCheck& cancel_check = {});
  // Makes the unique id by which new ranks join the parent's grow. Only one is open at a time, until a grow uses it or the
  // parent ends.
  Result<UniqueId> invite();
  // Collective over the ranks of the parent and new ones, which create by the same id: makes their communicator of `ranks`
  // ranks, in which the old ranks keep their numbers. `id`: null if another rank knows it, or invite made it.
  Result<std::unique_ptr<Communicator>> grow(int ranks, std::optional<UniqueId> id, const CreateOptions& options,
                                             const CancelCheck& cancel_check = {});

 private:
  CancelCheck ending_parent(const CancelCheck& cancel_check, const std::string& during);
  Result<void> run_unless_cancelled(const Call& call, const CancelCheck& cancel_check);
  Result<void> prepare_shrink(ShrinkAs as, const CancelCheck& cancel_check);

  Communicator& parent_;
  CommunicatorState& state_;
  DeviceCalls* device_calls_;
  std::atomic<bool>& in_call_;
  std::vector<uint64_t> shrinks_seen_;      // for each rank, the last shrink that this rank has heard of
  std::unique_ptr<Invitation> invitation_;  // null: no invitation is open
};

}  // namespace fccl::core
