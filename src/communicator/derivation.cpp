// Ends waits of the parent's ranks for a making that this rank gives up.
#include "communicator/derivation.h"

#include <fmt/format.h>

#include "communicator/communicator.h"
#include "creation/create_options.h"
#include "creation/grow.h"
#include "creation/shrink.h"
#include "creation/split.h"
#include "device_calls/device_calls.h"
#include "device_calls/device_path.h"
#include "device_calls/own_device.h"
#include "operations/communicator_state.h"
#include "operations/in_call.h"
#include "operations/stream.h"
#include "waiting/backoff.h"

namespace fccl::core {

Derivation::Derivation(Communicator& parent, CommunicatorState& state, DeviceCalls* device_calls, std::atomic<bool>& in_call)
    : parent_(parent), state_(state), device_calls_(device_calls), in_call_(in_call) {}

Derivation::~Derivation() = default;

Result<std::unique_ptr<Communicator>> Derivation::split(int color, int key, const CreateOptions& options,
                                                        const CancelCheck& cancel_check) {
  const InCall inside(in_call_);
  FCCL_TRY(parent_.check_usable());
  if (options.device) FCCL_TRY(DevicePath::check(*options.device, options.settings, parent_.ranks()));
  if (device_calls_)
    FCCL_TRY(device_calls_->await_lane(kGatherLane, Issuer::split, ending_parent(cancel_check, name_of(Issuer::split))));
  const auto run_here = [&](const Call& call) { return run_unless_cancelled(call, cancel_check); };
  FCCL_TRY_ASSIGN(auto state,
                  Split(*state_.control, parent_.rank(), parent_.ranks(), run_here, cancel_check).make(color, key, options));
  return state ? Communicator::of_state(options, std::move(state), cancel_check) : nullptr;
}

// If other ranks take part in this making or wait for this rank's, giving it up fails the parent, too.
CancelCheck Derivation::ending_parent(const CancelCheck& cancel_check, const std::string& during) {
  if (!cancel_check) return {};
  return [this, cancel_check, during]() -> Result<void> {
    const Result<void> wanted = cancel_check();
    if (wanted) return {};
    return fail(state_.control->failures.raise(
        {MessageKind::child_ended,
         fmt::format("rank {} ended a communicator that was being made of this one in {}", parent_.rank(), during)}));
  };
}

// A cancellable call runs on a stream, so that this thread can ask cancel_check.
Result<void> Derivation::run_unless_cancelled(const Call& call, const CancelCheck& cancel_check) {
  if (!cancel_check) return parent_.run(call, nullptr);
  FCCL_TRY_ASSIGN(Stream* const queue, parent_.queue_for(nullptr));
  FCCL_TRY(parent_.run(call, queue));
  const CancelCheck ask = ending_parent(cancel_check, describe(call.signature));
  sleep_until([&] {
    (void)ask();
    const auto done = queue->query();
    return !done || *done;
  });
  return queue->synchronize();
}

// Returns once no operation of this rank is in progress. No rank has heard of the shrink yet, so cancelling here leaves the
// communicator as it is.
Result<void> Derivation::prepare_shrink(ShrinkAs as, const CancelCheck& cancel_check) {
  FCCL_TRY(as == ShrinkAs::healthy ? parent_.check_usable() : parent_.check_open());
  if (as == ShrinkAs::ended && !state_.control->failures.has_failed())
    (void)state_.control->failures.raise(
        {MessageKind::ended_to_shrink, fmt::format("rank {} ended the communicator to shrink it", parent_.rank())});
  if (device_calls_) {
    const auto all = device_calls_->await_all(cancel_check);
    if (!all && (!cancel_check || cancel_check())) (void)device_calls_->gpu().raise("all issued calls", all.error());
  }
  Result<void> wanted;
  sleep_until([&] {
    if (cancel_check) wanted = cancel_check();
    return !wanted || parent_.is_idle();
  });
  FCCL_TRY(std::move(wanted));
  return as == ShrinkAs::healthy ? parent_.check_usable() : Result<void>{};
}

Result<std::unique_ptr<Communicator>> Derivation::shrink(const std::vector<int>& excluded, ShrinkAs as,
                                                         const CreateOptions& options, const CancelCheck& cancel_check) {
  Shrink shrink(state_, shrinks_seen_, cancel_check);
  FCCL_TRY(shrink.check());
  if (options.device) FCCL_TRY(DevicePath::check(*options.device, options.settings, parent_.ranks()));
  FCCL_TRY(prepare_shrink(as, cancel_check));
  const InCall inside(in_call_);
  FCCL_TRY_ASSIGN(auto state, shrink.make(excluded, options));
  return Communicator::of_state(options, std::move(state), cancel_check);
}

Result<UniqueId> Derivation::invite() {
  const InCall inside(in_call_);
  FCCL_TRY(parent_.check_usable());
  if (invitation_)
    return fail(
        fcclInvalidUsage,
        fmt::format("rank {} has made a unique id already by which nobody has come yet: grow by that one", parent_.rank()));
  FCCL_TRY_ASSIGN(auto opened, Invitation::open(parent_.options().settings));
  invitation_ = std::move(opened);
  return invitation_->id();
}

Result<std::unique_ptr<Communicator>> Derivation::grow(int ranks, std::optional<UniqueId> id, const CreateOptions& options,
                                                       const CancelCheck& cancel_check) {
  const InCall inside(in_call_);
  FCCL_TRY(parent_.check_usable());
  if (options.device) FCCL_TRY(DevicePath::check(*options.device, options.settings, ranks));
  if (device_calls_)
    FCCL_TRY(device_calls_->await_lane(kGatherLane, Issuer::grow, ending_parent(cancel_check, name_of(Issuer::grow))));
  if (!id && invitation_) id = invitation_->id();
  const auto run_here = [&](const Call& call) { return run_unless_cancelled(call, cancel_check); };
  Grow grow(*state_.control, parent_.ranks(), run_here, cancel_check);
  FCCL_TRY_ASSIGN(const auto agreed, grow.agree(ranks, id));
  if (invitation_ && invitation_->id() == agreed) {
    invitation_->spend();
    invitation_.reset();
  }
  FCCL_TRY_ASSIGN(auto state, grow.join(agreed, ranks, options));
  return Communicator::of_state(options, std::move(state), cancel_check);
}

}  // namespace fccl::core
