// EntryRounds: says in which rounds the members of a column tell each other of a call, and what each message carries.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>

#include "base/collective.h"
#include "topology/cost_constants.h"

namespace fccl::core::plan {

// Between so few members each tells all others, at once: dissemination would save no message.
inline constexpr int kMostMembersToEach = 3;
// Limit of what one member gives that travels with the entries.
inline constexpr size_t kContentBytes = 4096;
// Among so many members a message has room for four such contents: members who tell each other by dissemination pass on what
// they have heard. Among more members the memory for messages of all of them would be large.
inline constexpr int kMostMembersOfRoom = 64;

// Returns how many bytes travel with an entry at most.
constexpr size_t payload_bytes_of(int members) { return members <= kMostMembersOfRoom ? 4 * kContentBytes : kContentBytes; }

// Says who takes what a member gives.
struct Takers {
  const Collective& row;
  int root;
};

// A value, the same on all members. In round i a member tells the member `distance(i)` after it, and hears from the one so far
// before it. It tells either each member itself, at once; or by dissemination, in ceil(log2 members) rounds: a message then
// says that all members whom its sender has heard of made the same call, so the sender sends it when it has heard all earlier
// rounds.
class EntryRounds {
 public:
  EntryRounds() = default;
  EntryRounds(int members, bool by_dissemination) : members_(members), by_dissemination_(by_dissemination) {}

  // Returns the rounds of a call, those that take less time. `content`: the bytes that travel with the entries, from each
  // member to each other one; none if a plan moves the data. Dissemination does not suit content of which a message does not
  // hold enough.
  static EntryRounds of_call(int members, const Collective& row, std::optional<size_t> content, size_t payload_bytes,
                             const CostConstants& costs) {
    const EntryRounds to_each(members, false), by_dissemination(members, true);
    const size_t bytes = content.value_or(0);
    if (members <= kMostMembersToEach || bytes * static_cast<size_t>(most_contents(members, row)) > payload_bytes)
      return to_each;
    const double on_wire = static_cast<double>(bytes) * passed_on(members, row) * costs.wire_byte;
    return by_dissemination.seconds(costs) + on_wire > to_each.seconds(costs) ? to_each : by_dissemination;
  }

  bool is_by_dissemination() const { return by_dissemination_; }
  int count() const {
    return by_dissemination_ ? static_cast<int>(std::bit_width(static_cast<unsigned>(members_ - 1))) : members_ - 1;
  }
  // Returns the rounds of which each waits for the last one.
  int in_turn() const { return by_dissemination_ ? count() : std::min(1, count()); }
  // Predicts when all members have heard of the call.
  double seconds(const CostConstants& costs) const { return in_turn() * costs.latency + count() * costs.message; }
  int distance(int round) const { return by_dissemination_ ? 1 << round : round + 1; }
  int before(int member, int distance) const { return (member + members_ - distance) % members_; }
  int after(int member, int distance) const { return (member + distance) % members_; }
  bool may_tell(int round, int heard) const { return !by_dissemination_ || heard >= round; }

  // Says whose content a message of the round can carry: of its sender and of the members before it, `sources` in all, each
  // once.
  int sources(int round) const { return by_dissemination_ ? std::min(1 << round, members_ - (1 << round)) : 1; }
  // Returns the largest number of contents that a message of any round carries.
  static int most_contents(int members, const Collective& row) {
    return row.givers == Who::root && row.input == Extent::one_block ? 1 : std::max(1, members / 2);
  }
  // Says whether members can pass content on: of blocks of pairs they must know the lengths. `is_even`: all hosts have as many
  // ranks.
  static bool may_pass_on(const Collective& row, bool is_even) {
    return !row.has_pairs() || (is_even && !row.has_private_counts());
  }
  // Returns how many more contents each member sends by dissemination than to each. Only content that differs for each other
  // member travels more than once.
  static int passed_on(int members, const Collective& row) {
    if (row.givers != Who::all || row.input != Extent::block_per_rank) return 0;
    int contents = 0;
    for (int distance = 1; distance < members; ++distance) contents += std::popcount(static_cast<unsigned>(distance)) - 1;
    return contents;
  }
  // Calls `use` with each member that takes what `source` gives, and has it by a message of that round to `receiver`: that is
  // `receiver` itself, and those whom it tells of `source`, at once or by others; in the order of their distance from
  // `source`. Every member has the content of another one by one way alone.
  template <class Use>
  void for_each_taker(int round, int source, int receiver, const Takers& takers, Use&& use) const {
    if (!has_taker(round, source, receiver, takers)) return;
    for (int distance = before(receiver, source); distance < members_; distance += step(round))
      if (const int taker = after(source, distance); takers.row.takes(taker, takers.root)) use(taker);
  }
  // Tells if there is such a member, without a look at each.
  bool has_taker(int round, int source, int receiver, const Takers& takers) const {
    if (!takers.row.gives(source, takers.root) || takers.row.takers == Who::nobody) return false;
    if (takers.row.takers == Who::all) return true;
    const int first = before(receiver, source), distance = before(takers.root, source);
    return distance >= first && (distance - first) % step(round) == 0;
  }
  // Returns the round whose message says that a member so far before this one made the call, and brings its content.
  int round_of(int distance) const {
    return by_dissemination_ ? static_cast<int>(std::bit_width(static_cast<unsigned>(distance))) - 1 : distance - 1;
  }

 private:
  // Returns how far apart those are whom a message of the round serves.
  int step(int round) const { return by_dissemination_ ? 2 << round : members_; }

  int members_ = 1;
  bool by_dissemination_ = false;
};

}  // namespace fccl::core::plan
