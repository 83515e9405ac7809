// Rounds, on which the price rests: nothing that is sent in one needs what arrives in it or later.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "plan/catalog.h"

namespace fccl::core::plan {
namespace {

// The sink that knows in which round each slot was written, and keeps the first fault.
class Rounds {
 public:
  explicit Rounds(Group group) : group_(group), written_(kSpaces * group.members * group.members, -1) {}

  int member() const { return kEveryMember; }

  void transfer(const Transfer& t) {
    if (!pairs_.emplace(t.round, t.from, t.to).second) blame(t, "is the second from one to the other");
    for (int i = 0; i < t.count; ++i) {
      if (written(t.from, t.source, i) >= t.round) blame(t, "needs what arrives in it or later");
      written(t.to, t.target, i) = t.round;
    }
  }

  void add(const Addition& addition) {
    int& sum = written(addition.member, {Space::data, addition.chunk}, 0);
    for (int part = 0; part < group_.members; ++part) sum = std::max(sum, written(addition.member, {Space::parts, part}, 0));
  }

  const std::string& fault() const { return fault_; }

 private:
  int& written(int member, Slot slot, int i) {
    return written_[(member * kSpaces + static_cast<int>(slot.space)) * group_.members + group_.around(slot.index + i)];
  }

  void blame(const Transfer& t, const std::string& what) {
    if (fault_.empty())
      fault_ = "round " + std::to_string(t.round) + ": " + std::to_string(t.from) + " to " + std::to_string(t.to) + " " + what;
  }

  Group group_;
  std::vector<int> written_;
  std::set<std::tuple<int, int, int>> pairs_;
  std::string fault_;
};

std::string fault_of(void (*tell)(Group, Rounds&), Group group) {
  Rounds sink(group);
  tell(group, sink);
  return sink.fault();
}

TEST(Rounds, of_every_algorithm_need_only_earlier_ones_for_1_to_33_and_64_members) {
  std::vector<int> sizes{64};
  for (int members = 1; members <= 33; ++members) sizes.push_back(members);
  for (const auto& algorithm : kCatalog<Rounds>)
    for (int members : sizes) EXPECT_EQ(fault_of(algorithm.tell, {members, members / 2}), "") << algorithm.name << members;
}

TEST(Rounds, in_which_a_message_goes_on_at_once_are_refused) {
  const auto tell = [](Group, Rounds& sink) {
    sink.transfer({0, 0, 1, {Space::data, 0}, {Space::data, 0}});
    sink.transfer({0, 1, 2, {Space::data, 0}, {Space::data, 0}});
  };
  EXPECT_EQ(fault_of(tell, {3}), "round 0: 1 to 2 needs what arrives in it or later");
}

TEST(Rounds, in_which_a_sum_goes_on_at_once_are_refused) {
  const auto tell = [](Group, Rounds& sink) {
    sink.transfer({0, 1, 0, {Space::parts, 1}, {Space::parts, 1}});
    sink.add({0, 0});
    sink.transfer({0, 0, 1, {Space::data, 0}, {Space::data, 0}});
  };
  EXPECT_EQ(fault_of(tell, {2}), "round 0: 0 to 1 needs what arrives in it or later");
}

TEST(Rounds, in_which_a_member_sends_another_two_messages_are_refused) {
  const auto tell = [](Group, Rounds& sink) {
    sink.transfer({0, 0, 1, {Space::data, 0}, {Space::data, 0}});
    sink.transfer({0, 0, 1, {Space::data, 1}, {Space::data, 1}});
  };
  EXPECT_EQ(fault_of(tell, {2}), "round 0: 0 to 1 is the second from one to the other");
}

}  // namespace
}  // namespace fccl::core::plan
