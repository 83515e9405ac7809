// The check refuses every plan that lost a step, a wait, or sends the wrong thing to the wrong member.
#include <gtest/gtest.h>

#include <functional>

#include "base/call.h"
#include "plan/check.h"
#include "plan/every_algorithm.h"

namespace fccl::plan {
namespace {

using Members = std::vector<Steps>;

constexpr int kSizes[] = {2, 3, 4, 5, 8};

// Every mutant of one kind of an algorithm's steps: `mutate` changes step i of a member, or says that it cannot.
class Mutants : public testing::TestWithParam<Algorithm<Project>> {
 protected:
  using Mutate = std::function<bool(Members&, int member, size_t i)>;

  // How many mutants there are, and how many of them the check lets pass.
  struct Count {
    int all = 0;
    int passed = 0;
  };

  static Count count(const Mutate& mutate) {
    Count count;
    for (int members : kSizes) {
      const Group group{members, members / 2};
      const Members good = steps_of_all(GetParam().tell, group);
      for (int member = 0; member < members; ++member)
        for (size_t i = 0; i < good[member].size(); ++i) {
          Members mutant = good;
          if (!mutate(mutant, member, i)) continue;
          ++count.all;
          const bool passes = fault_of({GetParam().collective, GetParam().cut, group}, mutant).empty();
          count.passed += passes;
        }
    }
    return count;
  }

  static void expect_all_refused(const Mutate& mutate) {
    const Count mutants = count(mutate);
    EXPECT_EQ(mutants.passed, 0) << "of " << mutants.all;
  }
};

// The other end of a send.
size_t receive_of(const Members& members, int from, const Step& send) {
  const Steps& steps = members[send.peer];
  const auto is_it = [&](const Step& s) { return s.kind == Kind::receive && s.peer == from && s.message == send.message; };
  return std::find_if(steps.begin(), steps.end(), is_it) - steps.begin();
}

// Takes a step out, and lets what waited for it wait for the one before.
void erase(Steps& steps, size_t i) {
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
  for (Step& step : steps)
    if (step.after > static_cast<int>(i)) --step.after;
}

TEST_P(Mutants, that_lost_one_end_of_a_message_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    if (members[member][i].kind == Kind::add) return false;
    erase(members[member], i);
    return true;
  });
}

TEST_P(Mutants, that_lost_a_message_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    const Step send = members[member][i];
    if (send.kind != Kind::send) return false;
    erase(members[send.peer], receive_of(members, member, send));
    erase(members[member], i);
    return true;
  });
}

TEST_P(Mutants, that_lost_an_addition_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    if (members[member][i].kind != Kind::add) return false;
    erase(members[member], i);
    return true;
  });
}

TEST_P(Mutants, that_lost_the_last_arrival_a_step_waits_for_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    if (members[member][i].after == 0) return false;
    --members[member][i].after;
    return true;
  });
}

TEST_P(Mutants, that_do_not_wait_at_all_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    if (members[member][i].after == 0) return false;
    members[member][i].after = 0;
    return true;
  });
}

// A member that ends a slice with a sum made of the receiver's own sum knows that the receiver is done with what it was sent.
bool knows_without_waiting(const Algorithm<Project>& algorithm, Group group, int sender) {
  if (algorithm.cut == Cut::whole) return false;
  return algorithm.collective == fcclCollAllReduce || (algorithm.collective == fcclCollReduce && sender == group.root);
}

TEST_P(Mutants, that_do_not_wait_for_the_window_are_refused_unless_the_sender_knows) {
  for (const bool knows : {false, true}) {
    const Count mutants = count([&](Members& members, int member, size_t i) {
      Step& step = members[member][i];
      const int size = static_cast<int>(members.size());
      if (knows_without_waiting(GetParam(), {size, size / 2}, member) != knows) return false;
      return step.kind == Kind::send && std::exchange(step.opens, false);
    });
    EXPECT_EQ(mutants.passed, knows ? mutants.all : 0);
  }
}

TEST_P(Mutants, that_send_a_message_twice_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step send = members[member][i];
    if (send.kind != Kind::send) return false;
    Step receive = members[send.peer][receive_of(members, member, send)];
    send.message = receive.message = 1000;
    send.round = receive.round = 1000;
    members[member].push_back(send);
    members[send.peer].push_back(receive);
    return true;
  });
}

TEST_P(Mutants, that_add_twice_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    const Step add = members[member][i];
    if (add.kind != Kind::add) return false;
    members[member].push_back(add);
    return true;
  });
}

TEST_P(Mutants, that_send_to_another_member_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step& send = members[member][i];
    if (send.kind != Kind::send) return false;
    send.peer = (send.peer + 1) % static_cast<int>(members.size());
    return true;
  });
}

TEST_P(Mutants, in_which_another_member_receives_the_message_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step& send = members[member][i];
    if (send.kind != Kind::send) return false;
    const size_t place = receive_of(members, member, send);
    Step receive = members[send.peer][place];
    const int other = (send.peer + 1) % static_cast<int>(members.size());
    if (other == member) return false;
    erase(members[send.peer], place);
    send.peer = other;
    send.message = receive.message = 1000;
    members[other].push_back(receive);
    return true;
  });
}

TEST_P(Mutants, that_send_another_slot_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step& send = members[member][i];
    if (send.kind != Kind::send) return false;
    Step& receive = members[send.peer][receive_of(members, member, send)];
    send.here.index = receive.there.index = (send.here.index + 1) % static_cast<int>(members.size());
    return true;
  });
}

TEST_P(Mutants, that_write_another_slot_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step& send = members[member][i];
    if (send.kind != Kind::send) return false;
    Step& receive = members[send.peer][receive_of(members, member, send)];
    send.there.index = receive.here.index = (send.there.index + 1) % static_cast<int>(members.size());
    return true;
  });
}

TEST_P(Mutants, that_wait_in_a_circle_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step& send = members[member][i];
    const int last = static_cast<int>(members[member].size());
    if (send.kind != Kind::send || i + 1 == members[member].size()) return false;
    if (members[member].back().kind == Kind::send || send.after == last) return false;
    send.after = last;
    return true;
  });
}

INSTANTIATE_TEST_SUITE_P(Plan, Mutants, testing::ValuesIn(kCatalog<Project>), name_of_case);

}  // namespace
}  // namespace fccl::plan
