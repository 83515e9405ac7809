// Shrink: the surviving ranks make a communicator without the others, also after the old one has failed.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/meeting_places.h"
#include "creation/create_options.h"
#include "segment/shrink_board.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

class Columns;
struct Control;
struct CommunicatorState;

// Lives during one call of shrink, on the thread that issues the parent's calls. It makes no call of the parent. The survivors
// of one host meet by the boards in their shared memory; survivors of several hosts then meet at the port of the first one.
// Both outlive any failure. An error leaves the parent as it was.
class Shrink {
 public:
  // `seen`: for each rank, the number of the last shrink that this rank has heard of; the parent keeps it between shrinks.
  Shrink(const CommunicatorState& parent, std::vector<uint64_t>& seen, CancelCheck cancel_check);

  // Returns an error unless the parent can shrink.
  Result<void> check() const;
  // Returns this rank's state in the communicator without `excluded`, which names other ranks, each once.
  Result<std::unique_ptr<CommunicatorState>> make(const std::vector<int>& excluded, const CreateOptions& options);

 private:
  Result<std::unique_ptr<CommunicatorState>> meet(const ShrinkOffer& mine, const CreateOptions& options);
  Result<std::unique_ptr<CommunicatorState>> create(Bootstrap bootstrap, const ShrinkOffer& mine, const CreateOptions& options);
  Result<void> confirm_all_connected(CommunicatorState& made, const CreateOptions& options) const;
  bool is_spurious_disconnect(const Error& error) const;
  Result<Bootstrap> open_bootstrap(const CreateOptions& options) const;
  Result<UniqueId> id_of_root() const;
  JoinRequest request(const UniqueId& id, const ShrinkOffer& mine, const CreateOptions& options) const;
  bool is_root() const;
  bool is_here(int rank) const;
  Result<void> await_survivors(const ShrinkOffer& mine, std::chrono::milliseconds at_most);
  Result<bool> has_come(int rank, const ShrinkOffer& mine);
  bool differ(const ShrinkOffer& mine, const ShrinkOffer& theirs) const;
  bool is_new_offer(int rank, const ShrinkOffer& offer) const;
  std::optional<int> other_opinion(const ShrinkOffer& mine) const;
  void see_current_offers(const ShrinkOffer& mine);
  void see_all();
  void see(int rank, const ShrinkOffer& offer);
  Result<void> check_wanted() const;
  tl::unexpected<Error> difference(int rank, const ShrinkOffer& mine, const ShrinkOffer& theirs);
  std::vector<int> excluded_by(const ShrinkOffer& offer) const;

  Control& parent_;
  const Columns& columns_;
  const std::optional<MeetingPlaces>& places_;
  std::vector<uint64_t>& seen_;
  CancelCheck cancel_check_;
  std::vector<int> survivors_;
};

}  // namespace fccl::core
