// Advances all operations of a group in turn.
#include "operations/issued_group.h"

#include <algorithm>

#include "operations/issued_call.h"
#include "transfers/issued_transfers.h"
#include "transfers/transfer_lane.h"
#include "waiting/between_rounds.h"

namespace fccl::core {

IssuedGroup::IssuedGroup() = default;
IssuedGroup::~IssuedGroup() = default;

void IssuedGroup::add(std::unique_ptr<IssuedCall> call) { calls_.push_back({std::move(call)}); }

void IssuedGroup::add_staged(std::unique_ptr<IssuedCall> call) { calls_.push_back({std::move(call), true}); }

void IssuedGroup::add(const IssuedTransfer::Around& around, const TransferEnd& transfer) {
  auto place = std::ranges::find_if(transfers_, [&](const auto& each) { return &each->lane() == &around.lane; });
  if (place == transfers_.end()) place = transfers_.insert(place, std::make_unique<IssuedTransfers>());
  around.lane.count_in();
  (*place)->queue(around, transfer);
}

// Returns true if an operation moved. Operations that have ended are removed.
bool IssuedGroup::advance_calls() {
  bool moved = false;
  std::erase_if(calls_, [&](const Issued& each) {
    const Result<Advance> progress = each.call->advance();
    if (each.is_staged && progress && *progress == Advance::done) each.call->count_staged();
    return !keep(progress, moved);
  });
  return moved;
}

bool IssuedGroup::advance_transfers() {
  bool moved = false;
  std::erase_if(transfers_, [&](const std::unique_ptr<IssuedTransfers>& transfers) {
    TransferLane& lane = transfers->lane();
    const size_t count = transfers->size();
    if (keep(transfers->advance(), moved)) return false;
    lane.count_out(count);
    return true;
  });
  return moved;
}

// Returns true if the operation continues.
bool IssuedGroup::keep(const Result<Advance>& progress, bool& moved) {
  moved = moved || !progress || *progress != Advance::none;
  if (!progress && result_) result_ = fail(progress.error());
  return progress && *progress != Advance::done;
}

Result<Advance> IssuedGroup::advance() {
  const bool calls_moved = advance_calls(), transfers_moved = advance_transfers();
  if (!is_empty()) return calls_moved || transfers_moved ? Advance::some : Advance::none;
  if (!result_) return fail(result_.error());
  return Advance::done;
}

Result<void> IssuedGroup::run() { return advance_until_done(*this, oversubscribed_); }

}  // namespace fccl::core
