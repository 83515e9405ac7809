// The words in which a wire algorithm is written: who sends which chunk to whom in which round, and who adds.
//
// An algorithm is a function template that tells a sink everything that happens in a group: one member per host, n in all. It
// knows no sizes, no pointers and no time. Each member has three arrays of slots:
//
//   data[c]   chunk c of the buffer. What the member contributes lies there when a slice begins, and the result when it ends.
//   parts[q]  member q's partial of the one chunk that this member adds. The own one, parts[me], is there from the beginning:
//             what the member contributes to that chunk, in memory that no sum is written to.
//   given[c]  where every pair of members has a chunk of its own: what this member has for member c. It lies there from the
//             beginning and nothing is written to it; what has come from member c is then data[c].
//
// Rounds order an algorithm: what is sent in a round depends on nothing that arrives in the same round or later. A sink never
// waits for a round; it derives from the slots what each step must wait for.
#pragma once

#include <cstdint>

namespace fccl::plan {

struct Group {
  int members = 1;
  int root = 0;  // of rooted collectives

  // A member or chunk counted around the group: -1 is the last, `members` is the first.
  int around(int index) const { return ((index % members) + members) % members; }
};

enum class Space : uint8_t { data, parts, given };
inline constexpr int kSpaces = 3;

// One slot, or the first of several, which go around the group: behind slot n - 1 comes slot 0.
struct Slot {
  Space space = Space::data;
  int index = 0;

  friend bool operator==(const Slot&, const Slot&) = default;
};

// `from` writes `count` of its slots into as many of `to`'s. At most one message goes from one member to another in a round.
struct Transfer {
  int round;
  int from;
  int to;
  Slot source;
  Slot target;
  int count = 1;
};

// `member` adds its parts of all members, in the order of members as a tree, and writes the sum to data[chunk]. It is told
// behind the transfers that bring the parts.
struct Addition {
  int member;
  int chunk;
};

inline constexpr int kEveryMember = -1;

// Calls `send` for every member, so that it tells the transfer to the member `distance` above, 0 < distance < n. A sink that
// keeps one member's steps hears of the two transfers that concern it, so that one rank's plan is made without looking at all
// pairs of ranks.
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

}  // namespace fccl::plan
