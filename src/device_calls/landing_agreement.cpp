// Makes this rank's slots, tells the others where they are, reaches theirs, and hears how all have fared.
#include "device_calls/landing_agreement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bootstrap/bootstrap.h"
#include "health/control.h"
#include "landing/host_landing.h"
#include "landing/peer_landing.h"
#include "operations/communicator_state.h"
#include "operations/issued_call.h"
#include "os/log.h"
#include "passing/descriptor_passing.h"
#include "topology/columns.h"

namespace fccl::core {
namespace {

template <size_t size>
std::array<char, size> cut(const std::string& text) {
  std::array<char, size> cut{};
  std::copy_n(text.begin(), std::min(text.size(), size - 1), cut.begin());
  return cut;
}

}  // namespace

// What a rank says first: where its slots are, and which GPU it has.
struct LandingAgreement::Said {
  LandingPlace place;
  std::array<char, 32> bus_id;
  std::array<char, 64> identity;
  bool is_part_of_gpu;
};

// What it says then: whether it reaches the slots of all peers, or which one it does not.
struct LandingAgreement::Outcome {
  enum class Kind : uint8_t { reaches_all, has_no_slots, has_no_sums, cannot_reach, shares_divided_gpu, has_failed };
  Kind kind = Kind::reaches_all;
  int32_t peer = -1;
  std::array<char, 64> why_no_sums{};

  std::string text(int rank) const {
    switch (kind) {
      case Kind::has_no_slots:
        return fmt::format("rank {} has no slots, as its log says (FCCL_LOG=info)", rank);
      case Kind::has_no_sums:
        return fmt::format("rank {} has no kernels of sums, since {}", rank, why_no_sums.data());
      case Kind::cannot_reach:
        return fmt::format("rank {}'s GPU cannot reach rank {}'s", rank, peer);
      case Kind::shares_divided_gpu:
        return fmt::format("ranks {} and {} are MIG instances of one GPU", rank, peer);
      default:
        return fmt::format("rank {} cannot read the slots of rank {}, as its log says (FCCL_LOG=info)", rank, peer);
    }
  }
};

LandingAgreement::LandingAgreement(OwnDevice& gpu, CommunicatorState& state, LaneId id, uint64_t number, size_t bytes)
    : gpu_(gpu), state_(state), id_(id), number_(number), bytes_(bytes) {}

Result<std::unique_ptr<LandingSlots>> LandingAgreement::make(LandingKind kind, bool waits_for_words) const {
  const std::shared_ptr<Device>& device = gpu_.device();
  if (!waits_for_words) return fail(fcclSystemError, name_of(*device) + " cannot wait for 64-bit words in memory");
  const int rank = state_.control->peers.rank(), ranks = state_.columns->ranks();
  if (kind == LandingKind::host) return HostLanding::make(device, bytes_, rank, ranks);
  if (!device->limits().lends) return fail(fcclSystemError, name_of(*device) + " lends no memory to other processes");
  if (kind == LandingKind::peer) return PeerLanding::make(device, PeerLanding::Slots::gather, bytes_, rank, ranks);
  FCCL_TRY(device->load(static_cast<size_t>(ranks)));
  return PeerLanding::make(device, PeerLanding::Slots::pair, bytes_, rank, ranks);
}

LandingAgreement::Said LandingAgreement::say(const LandingSlots* slots) const {
  const DeviceLimits& limits = gpu_.device()->limits();
  return {slots != nullptr ? slots->place() : LandingPlace{}, cut<32>(limits.bus_id), cut<64>(limits.identity),
          limits.is_part_of_gpu};
}

Result<LandingFound> LandingAgreement::find(LandingKind kind, bool waits_for_words) {
  const Peers& peers = state_.control->peers;
  auto slots = make(kind, waits_for_words);
  Result<Descriptor> lent = slots ? (*slots)->lend() : fail(slots.error());
  const Said mine = say(lent ? slots->get() : nullptr);
  std::vector<Said> all(static_cast<size_t>(peers.count()));
  FCCL_TRY(exchange(&mine, all.data(), sizeof mine));
  Outcome own = why_no_slots(kind);
  if (!lent)
    log(LogLevel::info, fmt::format("{} (rank {})", lent.error().message, peers.rank()));
  else
    own.kind = Outcome::Kind::reaches_all;
  if (std::ranges::all_of(all, [](const Said& said) { return said.place.is_made; })) {
    FCCL_TRY_ASSIGN(const auto theirs, pass(kind, *lent));
    own = reach_all(kind, **slots, all, theirs);
  }
  std::vector<Outcome> outcomes(all.size());
  FCCL_TRY(exchange(&own, outcomes.data(), sizeof own));
  const auto first =
      std::ranges::find_if(outcomes, [](const Outcome& each) { return each.kind != Outcome::Kind::reaches_all; });
  if (first == outcomes.end()) return LandingFound{std::move(*slots), "", count_sharing(all)};
  return LandingFound{nullptr, first->text(static_cast<int>(first - outcomes.begin()))};
}

int LandingAgreement::count_sharing(const std::vector<Said>& all) const {
  const Peers& peers = state_.control->peers;
  const Said& mine = all[static_cast<size_t>(peers.rank())];
  int count = 0;
  for (int rank = 0; rank < peers.count(); ++rank)
    count += peers[rank].member.pid == peers[peers.rank()].member.pid && all[static_cast<size_t>(rank)].bus_id == mine.bus_id;
  return count;
}

LandingAgreement::Outcome LandingAgreement::why_no_slots(LandingKind kind) const {
  const std::string& why_no_sums = gpu_.device()->limits().why_no_sums;
  if (kind != LandingKind::pair || why_no_sums.empty()) return {Outcome::Kind::has_no_slots};
  return {Outcome::Kind::has_no_sums, -1, cut<64>(why_no_sums)};
}

LandingAgreement::Outcome LandingAgreement::obstacle_to(int peer, const Said& said) const {
  const DeviceLimits& own = gpu_.device()->limits();
  const std::string bus_id = said.bus_id.data();
  const bool same_gpu = bus_id == own.bus_id, same_part = said.identity == cut<64>(own.identity);
  if (own.is_part_of_gpu && same_gpu && !same_part) return {Outcome::Kind::shares_divided_gpu, peer};
  if (!gpu_.device()->may_reach(bus_id)) return {Outcome::Kind::cannot_reach, peer};
  return {};
}

LandingAgreement::Outcome LandingAgreement::reach_all(LandingKind kind, LandingSlots& slots, const std::vector<Said>& all,
                                                      const std::vector<Descriptor>& lent) const {
  const Peers& peers = state_.control->peers;
  for (int rank = 0; rank < peers.count(); ++rank) {
    if (rank == peers.rank()) continue;
    const Said& said = all[static_cast<size_t>(rank)];
    if (kind != LandingKind::host)
      if (const Outcome outcome = obstacle_to(rank, said); outcome.kind != Outcome::Kind::reaches_all) return outcome;
    const Result<void> reached = slots.reach(rank, peers[rank].member.pid, said.place, lent[static_cast<size_t>(rank)]);
    if (reached) continue;
    log(LogLevel::info, fmt::format("{} (rank {}, of the slots of rank {})", reached.error().message, peers.rank(), rank));
    return {Outcome::Kind::has_failed, rank};
  }
  return {};
}

// Peers wait for this rank's descriptor: so without it the communicator has failed.
Result<std::vector<Descriptor>> LandingAgreement::pass(LandingKind kind, const Descriptor& lent) {
  FailureBoard& failures = state_.control->failures;
  const bool is_needed = kind != LandingKind::host && state_.joined.has_value();
  if (!is_needed) return std::vector<Descriptor>(static_cast<size_t>(state_.columns->ranks()));
  const auto look = [&]() -> Result<void> {
    if (auto failed = failures.first()) return fail(std::move(*failed));
    return {};
  };
  auto passed = swap_descriptors(*state_.joined, lent.get(), {Deadline::after(state_.timeout), look});
  if (passed) return passed;
  state_.joined.reset();
  if (auto failed = failures.first()) return fail(std::move(*failed));
  return fail(
      failures.raise({passed.error().code,
                      fmt::format("rank {} could not pass on the memory of its GPU, by which the ranks of a host share bytes: "
                                  "{}; here the deadline is the communicator's timeout (FCCL_TIMEOUT)",
                                  state_.control->peers.rank(), passed.error().message)}));
}

// A lane runs the collectives that belong to it, and no others: the pair lane exchanges by an AlltoAll of equal blocks.
Result<void> LandingAgreement::exchange(const void* mine, void* all, size_t bytes) {
  Call call = exchange_of(Issuer::first_call, mine, all, bytes);
  std::vector<std::byte> blocks;
  if (id_ == kPairLane) {
    const auto* const block = static_cast<const std::byte*>(mine);
    for (int rank = 0; rank < state_.columns->ranks(); ++rank) blocks.insert(blocks.end(), block, block + bytes);
    call.signature.collective = fcclCollAlltoAll;
    call.send = blocks.data();
  }
  return IssuedCall(state_.around(), state_.lanes[id_], {call, number_}, state_.timeout).run();
}

}  // namespace fccl::core
