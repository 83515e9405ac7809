// The vocabulary of wire algorithms: transfers (who sends which chunk to whom, in which round) and additions.
//
// An algorithm is a function template that reports everything that happens in a group to a sink. A group has one member per
// host, n in all. An algorithm knows no sizes, no pointers and no time. Each member has three arrays of slots:
//
//   data[c]   chunk c of the buffer. It holds the member's contribution when a slice begins, and the result when it ends.
//   parts[q]  member q's partial of the one chunk that this member adds. The member's own part, parts[me], is there from the
//             beginning: its contribution to that chunk, in memory that no sum overwrites.
//   given[c]  this member's chunk for member c, if every pair of members has a chunk of its own. It is there from the
//             beginning, and no step writes to it. The chunk that comes from member c goes to data[c].
//
// Rounds order an algorithm: a transfer depends on nothing that arrives in the same round or later. A sink never waits for a
// round; it derives from the slots what each step must wait for.
#pragma once

#include <cstdint>

namespace fccl::core::plan {

struct Group {
  int members = 1;
  int root = 0;  // used by rooted collectives

  // Wraps an index around the group: -1 is the last member or chunk, `members` is the first.
  int around(int index) const { return ((index % members) + members) % members; }
};

enum class Space : uint8_t { data, parts, given };
inline constexpr int kSpaces = 3;

// One slot, or the first of several. They wrap around: slot 0 follows slot n - 1.
struct Slot {
  Space space = Space::data;
  int index = 0;

  friend bool operator==(const Slot&, const Slot&) = default;
};

// `from` copies `count` of its slots into as many of `to`'s. A member sends at most one message to another in a round.
struct Transfer {
  int round;
  int from;
  int to;
  Slot source;
  Slot target;
  int count = 1;
};

// `member` adds its parts from all members, as a tree in the order of members, and writes the sum to data[chunk]. The algorithm
// reports it after the transfers that bring the parts.
struct Addition {
  int member;
  int chunk;
};

inline constexpr int kEveryMember = -1;

// Calls `send(from)` for every member, to report a transfer to the member `distance` above it, 0 < distance < n. A sink that
// keeps one member's steps gets only the two transfers that concern it, so planning one rank never visits all pairs.
template <class Sink, class Send>
void everyone(Group group, int distance, const Sink& sink, Send send) {
  const int member = sink.member();
  if (member != kEveryMember) {
    send(member);
    send(group.around(member - distance));
    return;
  }
  for (int from = 0; from < group.members; ++from) send(from);
}

}  // namespace fccl::core::plan
