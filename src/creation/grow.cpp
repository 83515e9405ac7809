// Makes one exchange on the parent, and a creation.
#include "creation/grow.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "creation/creation.h"
#include "operations/communicator_state.h"
#include "sockets/socket.h"
#include "waiting/failure_timing.h"

namespace fccl::core {

using namespace std::chrono_literals;

namespace {

// A rank of the parent sends this to the others.
struct Proposal {
  int ranks;
  fcclUniqueId id;  // all zeros: the rank knows no id

  bool has_id() const { return !has_id_of({}); }
  bool has_id_of(const Proposal& other) const { return std::memcmp(&id, &other.id, sizeof id) == 0; }
};

}  // namespace

Result<std::unique_ptr<Invitation>> Invitation::open(const Settings& settings) {
  FCCL_TRY_ASSIGN(auto prepared, prepare_bootstrap(settings));
  const UniqueId id = prepared.id;
  FCCL_TRY_ASSIGN(auto service, serve_bootstrap(std::move(prepared)));
  return std::unique_ptr<Invitation>(new Invitation(id, std::move(service)));
}

Invitation::~Invitation() {
  if (service_ && forks_ == forks()) shut(service_.get());
}

Result<UniqueId> Grow::agree(int ranks, const std::optional<UniqueId>& id) {
  const Proposal mine{ranks, id ? to_c(*id) : fcclUniqueId{}};
  std::vector<Proposal> all(static_cast<size_t>(ranks_));
  FCCL_TRY(run_(exchange_of(Issuer::grow, &mine, all.data(), sizeof mine)));
  int knows = -1;  // the first rank that has an id
  for (int rank = 0; rank < ranks_; ++rank) {
    const Proposal& theirs = all[static_cast<size_t>(rank)];
    if (theirs.ranks != all.front().ranks)
      return fail(fcclInvalidUsage,
                  fmt::format("the ranks grow differently: {} gives nRanks = {}, {} gives {}. All ranks, the "
                              "new ones too, must give the same number",
                              parent_.peers.describe(0), all.front().ranks, parent_.peers.describe(rank), theirs.ranks));
    if (!theirs.has_id()) continue;
    if (knows < 0) knows = rank;
    if (!theirs.has_id_of(all[static_cast<size_t>(knows)]))
      return fail(fcclInvalidUsage,
                  fmt::format("the ranks grow differently: {} and {} have different unique ids. One rank calls "
                              "fcclCommGetUniqueId, and the others give that id or NULL",
                              parent_.peers.describe(knows), parent_.peers.describe(rank)));
  }
  if (knows < 0)
    return fail(fcclInvalidUsage, fmt::format("none of the {} ranks has a unique id to grow by: one of them calls "
                                              "fcclCommGetUniqueId before, and the new ranks are given that id",
                                              ranks_));
  return from_c(all[static_cast<size_t>(knows)].id);
}

Result<void> Grow::check_parent() {
  parent_.liveness.look_for_deaths();
  if (auto failed = parent_.failures.first()) return fail(std::move(*failed));
  return {};
}

Result<std::unique_ptr<CommunicatorState>> Grow::join(const UniqueId& id, int ranks, const CreateOptions& options) {
  // Only the parent notices a rank that dies before it has joined.
  auto made = create_state(join_request(id, parent_.peers.rank(), ranks, options), options, [this]() -> Result<void> {
    FCCL_TRY(check_parent());
    return cancel_check_ ? cancel_check_() : Result<void>{};
  });
  if (made || made.error().code != fcclRemoteError) return made;
  // A dying rank's connections close a moment before its death is visible, and a death is the better explanation.
  for (const Deadline dying = Deadline::after(kDeathDelay); !dying.passed(); std::this_thread::sleep_for(1ms))
    FCCL_TRY(check_parent());
  return made;
}

}  // namespace fccl::core
