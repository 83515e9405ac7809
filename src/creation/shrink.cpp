// Makes offers on the boards of the parent's shared memory, a bootstrap of the first survivor, and a creation.
#include "creation/shrink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <thread>

#include "creation/creation.h"
#include "creation/init_calls.h"
#include "health/control.h"
#include "operations/communicator_state.h"
#include "os/log.h"
#include "segment/rank_state.h"
#include "sockets/socket.h"
#include "topology/columns.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds kPause{200};
// Longest wait of a later attempt, since not every rank may make one.
constexpr std::chrono::milliseconds kRetryTime{5000};
constexpr int kMostRetries = 2;
// Ranks with other lists are already on their way to the root when it learns of them, and are told in this time; a rank that
// finds the root gone waits until its own deadline.
constexpr std::chrono::milliseconds kAnnounceTime{1000};
// Limits the length of a list of ranks in the text that the ranks compare.
constexpr size_t kMostListed = 1000;

std::string describe_list(const std::vector<int>& ranks) {
  if (ranks.empty()) return "no rank";
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

// Returns once every rank has heard why the survivors do not meet: the service then shuts its listener.
void drain_listener(const Descriptor& service) {
  pollfd listener{service.get(), 0, 0};
  poll_until({&listener, 1}, Deadline::after(kAnnounceTime));
}

}  // namespace

Shrink::Shrink(const CommunicatorState& parent, std::vector<uint64_t>& seen, CancelCheck cancel_check)
    : parent_(*parent.control),
      columns_(*parent.columns),
      places_(parent.places),
      seen_(seen),
      cancel_check_(std::move(cancel_check)) {
  seen_.resize(static_cast<size_t>(columns_.ranks()));
}

Result<void> Shrink::check() const {
  if (columns_.ranks() > ShrinkOffer::kMostRanks)
    return fail(MessageKind::too_many_to_shrink,
                fmt::format("fcclCommShrink takes communicators of at most {} ranks, this one has {}", ShrinkOffer::kMostRanks,
                            columns_.ranks()));
  return {};
}

Result<std::unique_ptr<CommunicatorState>> Shrink::make(const std::vector<int>& excluded, const CreateOptions& options) {
  ShrinkBoard& board = parent_.peers.state_of(parent_.peers.rank()).shrink;
  ShrinkOffer mine{board.read().number + 1, ShrinkState::open};
  for (const int rank : excluded) mine.excluded.set(static_cast<size_t>(rank));
  for (int rank = 0; rank < columns_.ranks(); ++rank)
    if (!mine.excluded[static_cast<size_t>(rank)]) survivors_.push_back(rank);
  auto made = meet(mine, options);
  board.set_state(mine.number, made ? ShrinkState::made : ShrinkState::failed);
  return made;
}

// The first survivor opens the meeting place before any rank can come there.
Result<std::unique_ptr<CommunicatorState>> Shrink::meet(const ShrinkOffer& mine, const CreateOptions& options) {
  Result<Bootstrap> bootstrap{};
  ShrinkOffer offer = mine;
  if (is_root()) bootstrap = open_bootstrap(options);
  if (is_root() && bootstrap) offer.id = std::bit_cast<ShrinkOffer::Id>(to_c(bootstrap->id));
  parent_.peers.state_of(parent_.peers.rank()).shrink.write(offer);
  FCCL_TRY(await_survivors(mine, options.settings.init_timeout));
  if (!bootstrap) return fail(bootstrap.error());
  auto made = create(std::move(*bootstrap), mine, options);
  for (int retry = 0; retry < kMostRetries && !made && places_ && is_spurious_disconnect(made.error()); ++retry) {
    log(LogLevel::info, made.error().message + "; fcclCommShrink tries again");
    if (is_root()) bootstrap = open_bootstrap(options);
    if (!bootstrap) return fail(bootstrap.error());
    CreateOptions again = options;
    again.settings.init_timeout = std::min(options.settings.init_timeout, kRetryTime);
    made = create(std::move(*bootstrap), mine, again);
  }
  if (made || !places_) return made;
  return fail(made.error().code,
              fmt::format("{} (in fcclCommShrink without {}, which counts the ranks anew from {} on)", made.error().message,
                          describe_list(excluded_by(mine)), parent_.peers.describe(survivors_.front())));
}

// `bootstrap`: only the root has one.
Result<std::unique_ptr<CommunicatorState>> Shrink::create(Bootstrap bootstrap, const ShrinkOffer& mine,
                                                          const CreateOptions& options) {
  FCCL_TRY_ASSIGN(const auto id, id_of_root());
  if (places_) bootstrap.excluded = excluded_by(mine);
  FCCL_TRY_ASSIGN(auto served, is_root() ? serve_bootstrap(std::move(bootstrap)) : Descriptor{});
  auto made = create_state(request(id, mine, options), options, [this] { return check_wanted(); });
  if (made && places_)
    if (auto seen = confirm_all_connected(**made, options); !seen) made = fail(std::move(seen).error());
  if (made || !is_root()) return made;
  if (made.error().code == fcclInvalidUsage) drain_listener(served);
  shut(served.get());
  return made;
}

// Without this barrier one of three hosts might have finished when the other two lose the connection that they have just made.
Result<void> Shrink::confirm_all_connected(CommunicatorState& made, const CreateOptions& options) const {
  made.control->judge.ask([this] { return check_wanted(); });
  FCCL_TRY(InitCalls(made, Deadline::after(options.settings.init_timeout)).barrier());
  made.control->judge.ask({});
  return {};
}

// Provider "net" of libfabric 1.17 reuses its state of a dead peer for the next peer that it meets. If two peers connect to
// each other at the same time, it may take the other's request for that of a new process, and end a good connection; it
// seldom does so twice. All survivors see this failure, since none returns a communicator before all have shown that they reach
// each other. So all of them try again.
bool Shrink::is_spurious_disconnect(const Error& error) const {
  if (error.code != fcclRemoteError) return false;
  for (const Deadline dying = Deadline::after(kDeathDelay); !dying.passed(); std::this_thread::sleep_for(kPause))
    if (!check_wanted()) return false;
  return true;
}

Result<Bootstrap> Shrink::open_bootstrap(const CreateOptions& options) const {
  return places_ ? places_->open(parent_.peers.rank()) : prepare_bootstrap(options.settings);
}

Result<UniqueId> Shrink::id_of_root() const {
  const int root = survivors_.front();
  if (!is_here(root)) return places_->id_of(root);
  auto id = from_c(std::bit_cast<fcclUniqueId>(parent_.peers.state_of(root).shrink.read().id));
  if (!id) return fail(fcclRemoteError, fmt::format("{} could not open a bootstrap", parent_.peers.describe(root)));
  return id;
}

// Between hosts no rank knows yet whether the others exclude the same ranks, or whether the root has started.
JoinRequest Shrink::request(const UniqueId& id, const ShrinkOffer& mine, const CreateOptions& options) const {
  const auto place = std::ranges::find(survivors_, parent_.peers.rank()) - survivors_.begin();
  JoinRequest request = join_request(id, static_cast<int>(place), static_cast<int>(survivors_.size()), options);
  if (!places_) return request;
  const std::string excluded = fmt::format("{}", fmt::join(excluded_by(mine), ","));
  const Digest whole = digest(Key{}, "fccl excluded", {excluded});
  request.agreement += excluded.size() <= kMostListed ? fmt::format("excludeRanksList={}\n", excluded)
                                                      : fmt::format("excludeRanksList={}... (hash {:02x})\n",
                                                                    excluded.substr(0, kMostListed), fmt::join(whole, ""));
  request.awaits_root = true;
  request.origin = parent_.peers.rank();
  return request;
}

bool Shrink::is_root() const { return survivors_.front() == parent_.peers.rank(); }

bool Shrink::is_here(int rank) const { return columns_.host_of(rank) == columns_.host(); }

Result<void> Shrink::await_survivors(const ShrinkOffer& mine, std::chrono::milliseconds at_most) {
  const Deadline deadline = Deadline::after(at_most);
  while (true) {
    int missing = -1;
    for (int rank = 0; rank < columns_.ranks(); ++rank) {
      if (rank == parent_.peers.rank()) continue;
      FCCL_TRY_ASSIGN(const auto come, has_come(rank, mine));
      if (!come && missing < 0) missing = rank;
    }
    if (missing < 0) break;
    if (cancel_check_) FCCL_TRY(cancel_check_());
    if (deadline.passed())
      return fail(MessageKind::late_for_shrink,
                  fmt::format("rank {} waited {:.1f} s in fcclCommShrink without {} for {}: has every survivor called it? "
                              "FCCL_INIT_TIMEOUT (config.initTimeoutMs) decides how long to wait",
                              parent_.peers.rank(), in_seconds(at_most), describe_list(excluded_by(mine)),
                              parent_.peers.describe(missing)));
    std::this_thread::sleep_for(kPause);
  }
  see_current_offers(mine);
  return {};
}

// True if this rank need not wait for `rank` any more. An offer that this rank's list excludes, or that excludes this rank,
// belongs to another shrink, earlier or later.
Result<bool> Shrink::has_come(int rank, const ShrinkOffer& mine) {
  if (mine.excluded[static_cast<size_t>(rank)]) return true;
  const ShrinkOffer theirs = is_here(rank) ? parent_.peers.state_of(rank).shrink.read() : ShrinkOffer{};
  const bool is_for_this_shrink = is_new_offer(rank, theirs) && !theirs.excluded[static_cast<size_t>(parent_.peers.rank())];
  if (is_for_this_shrink && differ(mine, theirs)) return difference(rank, mine, theirs);
  if (parent_.liveness.has_died(rank))
    return fail(MessageKind::died_in_shrink, fmt::format("{} died before all survivors were in fcclCommShrink: exclude it, too",
                                                         parent_.peers.describe(rank)));
  if (is_for_this_shrink && theirs.excluded == mine.excluded) {
    // A rank may still show the offer of an earlier shrink, which failed. That offer counts for nothing, unless the root could
    // not open a listener: its offer then has no id, and all ranks must hear of the root's failure.
    const bool is_root_without_id = rank == survivors_.front() && theirs.id == ShrinkOffer::Id{};
    if (theirs.state == ShrinkState::open || is_root_without_id) return true;
    if (const auto other = other_opinion(mine)) return difference(*other, mine, parent_.peers.state_of(*other).shrink.read());
    return false;
  }
  if (parent_.liveness.has_left(rank))
    return fail(MessageKind::left,
                fmt::format("{} has finalized or destroyed the communicator and cannot come to fcclCommShrink",
                            parent_.peers.describe(rank)));
  // Ranks of other hosts are awaited at the meeting place.
  return !is_here(rank);
}

// Finds a rank of this host with another list, even one without this rank: a survivor with this rank's list may have failed
// because of it.
std::optional<int> Shrink::other_opinion(const ShrinkOffer& mine) const {
  for (const int rank : columns_.ranks_of(columns_.host()))
    if (const ShrinkOffer theirs = parent_.peers.state_of(rank).shrink.read();
        rank != parent_.peers.rank() && is_new_offer(rank, theirs) && differ(mine, theirs))
      return rank;
  return std::nullopt;
}

// True if the lists differ in a living rank. A rank learns of deaths by itself, and comes again.
bool Shrink::differ(const ShrinkOffer& mine, const ShrinkOffer& theirs) const {
  const ShrinkOffer::Excluded differing = mine.excluded ^ theirs.excluded;
  for (int rank = 0; differing.any() && rank < columns_.ranks(); ++rank)
    if (differing[static_cast<size_t>(rank)] && !parent_.liveness.has_died(rank)) return true;
  return false;
}

bool Shrink::is_new_offer(int rank, const ShrinkOffer& offer) const {
  return offer.number > seen_[static_cast<size_t>(rank)] &&
         (offer.state == ShrinkState::open || offer.state == ShrinkState::failed);
}

// An excluded rank's offer may be for a later shrink, unless that rank has failed.
void Shrink::see_current_offers(const ShrinkOffer& mine) {
  for (const int rank : columns_.ranks_of(columns_.host()))
    if (const ShrinkOffer offer = parent_.peers.state_of(rank).shrink.read();
        offer.state == ShrinkState::failed || !mine.excluded[static_cast<size_t>(rank)])
      see(rank, offer);
}

void Shrink::see_all() {
  for (const int rank : columns_.ranks_of(columns_.host())) see(rank, parent_.peers.state_of(rank).shrink.read());
}

void Shrink::see(int rank, const ShrinkOffer& offer) {
  if (offer.state != ShrinkState::none) seen_[static_cast<size_t>(rank)] = offer.number;
}

Result<void> Shrink::check_wanted() const {
  for (const int rank : survivors_)
    if (parent_.liveness.has_died(rank))
      return fail(MessageKind::died_in_shrink,
                  fmt::format("{} died in fcclCommShrink: exclude it, too", parent_.peers.describe(rank)));
  return cancel_check_ ? cancel_check_() : Result<void>{};
}

tl::unexpected<Error> Shrink::difference(int rank, const ShrinkOffer& mine, const ShrinkOffer& theirs) {
  see_all();
  return fail(MessageKind::shrinks_differ,
              fmt::format("the ranks shrink differently: rank {} excludes {}, {} excludes {}. All survivors must give the "
                          "same excludeRanksList; fcclCommGetDeadRanks says who has died",
                          parent_.peers.rank(), describe_list(excluded_by(mine)), parent_.peers.describe(rank),
                          describe_list(excluded_by(theirs))));
}

std::vector<int> Shrink::excluded_by(const ShrinkOffer& offer) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < columns_.ranks(); ++rank)
    if (offer.excluded[static_cast<size_t>(rank)]) ranks.push_back(rank);
  return ranks;
}

}  // namespace fccl::core
