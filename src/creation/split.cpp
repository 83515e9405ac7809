// Makes two exchanges on the parent, and a creation.
#include "creation/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <tuple>
#include <vector>

#include "creation/creation.h"
#include "operations/communicator_state.h"
#include "sockets/socket.h"
#include "waiting/failure_timing.h"

namespace fccl::core {

using namespace std::chrono_literals;

// Holds the ranks of one color, and the id by which they meet.
struct Split::Color {
  int number;
  std::vector<int> ranks;         // numbers in the parent, in the order of the new communicator
  Result<Bootstrap> bootstrap{};  // only the first rank has one
  fcclUniqueId id{};              // all zeros if the first rank could not open it

  int root() const { return ranks.front(); }
};

Result<std::unique_ptr<CommunicatorState>> Split::make(int color, int key, const CreateOptions& options) {
  FCCL_TRY_ASSIGN(auto chosen, choose(color, key));
  if (color >= 0 && chosen.root() == rank_) chosen.bootstrap = prepare_bootstrap(options.settings);
  if (chosen.bootstrap) chosen.id = to_c(chosen.bootstrap->id);
  std::vector<fcclUniqueId> ids(static_cast<size_t>(ranks_));
  FCCL_TRY(exchange(&chosen.id, ids.data(), sizeof chosen.id));
  if (color < 0) return std::unique_ptr<CommunicatorState>{};
  chosen.id = ids[static_cast<size_t>(chosen.root())];
  auto made = meet(chosen, options);
  if (made) return made;
  return fail(fail_parent(chosen, std::move(made).error()));
}

// Every rank learns the color and key of all.
Result<Split::Color> Split::choose(int color, int key) {
  struct Choice {
    int color, key, rank;
  };
  const Choice mine{color, key, rank_};
  std::vector<Choice> all(static_cast<size_t>(ranks_));
  FCCL_TRY(exchange(&mine, all.data(), sizeof mine));
  std::erase_if(all, [&](const Choice& other) { return other.color != color; });
  std::sort(all.begin(), all.end(),
            [](const Choice& a, const Choice& b) { return std::tie(a.key, a.rank) < std::tie(b.key, b.rank); });
  Color chosen{color, {}};
  for (const Choice& choice : all) chosen.ranks.push_back(choice.rank);
  return chosen;
}

Result<void> Split::exchange(const void* mine, void* all, size_t bytes) {
  return run_(exchange_of(Issuer::split, mine, all, bytes));
}

std::optional<Error> Split::failure() {
  parent_.liveness.look_for_deaths();
  return parent_.failures.first();
}

Result<std::unique_ptr<CommunicatorState>> Split::meet(Color& color, const CreateOptions& options) {
  if (!color.bootstrap) return fail(color.bootstrap.error());
  const bool is_root = color.root() == rank_;
  FCCL_TRY_ASSIGN(auto served, is_root ? serve_bootstrap(std::move(*color.bootstrap)) : Descriptor{});
  auto id = from_c(color.id);
  if (!id) return fail(fcclRemoteError, fmt::format("{} could not open a bootstrap", parent_.peers.describe(color.root())));
  const auto place = std::find(color.ranks.begin(), color.ranks.end(), rank_) - color.ranks.begin();
  const auto cancel_check = [this]() -> Result<void> {
    if (auto failed = failure()) return fail(std::move(*failed));
    return cancel_check_ ? cancel_check_() : Result<void>{};
  };
  auto made = create_state(join_request(*id, static_cast<int>(place), static_cast<int>(color.ranks.size()), options), options,
                           cancel_check);
  if (!made && is_root) shut(served.get());
  return made;
}

// A split that fails on one rank fails the parent on all. The error here may only follow from a failure of the parent that
// others saw first, or from a rank that is dying: a rank's connections close a moment before its death is visible.
Error Split::fail_parent(const Color& color, Error error) {
  const Deadline dying = Deadline::after(error.code == fcclRemoteError ? kDeathDelay : 0ms);
  while (true) {
    if (auto failed = failure()) return *failed;
    if (dying.passed()) break;
    std::this_thread::sleep_for(1ms);
  }
  return parent_.failures.raise(
      {error.code, fmt::format("{} (in the part of color {}, whose ranks are counted anew from {} on)", error.message,
                               color.number, parent_.peers.describe(color.root()))});
}

}  // namespace fccl::core
