// project: one member's part of an algorithm as a flat array of steps, which the plan executor runs for every slice.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "plan/steps.h"

namespace fccl::core::plan {

enum class Kind : uint8_t { send, receive, add };

// One step of a member. Additions use only `kind` and `here`, their result; the other fields belong to sends and receives.
//
// The executor runs the sends of a slice in the order of the array. Concurrently, it runs the receives and additions in their
// order. A send waits until every receive and addition among the first `after` steps is done. The k-th send to a peer is the
// k-th receive there, and both ends know `here` and `there`.
struct Step {
  Kind kind;
  int peer = -1;
  Slot here;
  Slot there;
  int count = 1;
  int after = 0;
};

// The steps of one member.
using Steps = std::vector<Step>;

// The sink that keeps the steps of one member.
class Project {
 public:
  Project(Group group, int member) : group_(group), member_(member) { written_.fill(Written(group.members, 0)); }

  int member() const { return member_; }

  void transfer(const Transfer& transfer) {
    if (transfer.from == member_) send(transfer);
    if (transfer.to == member_) receive(transfer);
  }

  void add(const Addition& addition) {
    if (addition.member != member_) return;
    steps_.push_back({.kind = Kind::add, .here = {Space::data, addition.chunk}, .there = {}});
    write(steps_.back().here, 1);
  }

  Steps take() { return std::move(steps_); }

 private:
  // Holds for each slot 1 + the index of the step that wrote it last; 0 for a slot that no step has written.
  using Written = std::vector<int>;

  void send(const Transfer& t) {
    steps_.push_back({Kind::send, t.to, t.source, t.target, t.count, written(t.source, t.count)});
  }

  void receive(const Transfer& t) {
    steps_.push_back({Kind::receive, t.from, t.target, t.source, t.count});
    write(t.target, t.count);
  }

  int written(Slot first, int count) const {
    int last = 0;
    for (int i = 0; i < count; ++i) last = std::max(last, of(first.space)[group_.around(first.index + i)]);
    return last;
  }

  void write(Slot first, int count) {
    for (int i = 0; i < count; ++i)
      written_[static_cast<size_t>(first.space)][group_.around(first.index + i)] = static_cast<int>(steps_.size());
  }

  const Written& of(Space space) const { return written_[static_cast<size_t>(space)]; }

  Group group_;
  int member_;
  std::array<Written, kSpaces> written_;
  Steps steps_;
};

// Returns the steps of one member in an algorithm, given by its index in the catalog.
Steps steps_of(int algorithm, Group group, int member);

}  // namespace fccl::core::plan
