// The check refuses every plan that lost a step, a wait, or sends the wrong thing to the wrong member.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/call.h"
#include "plan/check.h"
#include "plan/every_algorithm.h"

namespace fccl::core::plan {
namespace {

using Members = std::vector<Steps>;

constexpr int kSizes[] = {2, 3, 4, 5, 8};

// Every mutant of one kind of an algorithm's steps: `mutate` changes step i of a member, or says that it cannot.
class Mutants : public ::testing::TestWithParam<Algorithm<Project>> {
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

// How many of a member's steps before this one are of its kind and with its peer.
int place_of(const Steps& steps, size_t i) {
  const auto is_like_it = [&](const Step& step) { return step.kind == steps[i].kind && step.peer == steps[i].peer; };
  return static_cast<int>(std::count_if(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(i), is_like_it));
}

// The other end of a send.
size_t receive_of(const Members& members, int from, size_t i) {
  int before = place_of(members[from], i);
  const Steps& steps = members[members[from][i].peer];
  const auto is_it = [&](const Step& s) { return s.kind == Kind::receive && s.peer == from && before-- == 0; };
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
    erase(members[send.peer], receive_of(members, member, i));
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

// A send that waits like the one before it is held back by that one, too.
TEST_P(Mutants, in_which_sends_lost_the_last_arrival_they_wait_for_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    const int after = members[member][i].after;
    for (Step& step : members[member])
      if (after > 0 && step.after == after) --step.after;
    return after > 0;
  });
}

TEST_P(Mutants, that_do_not_wait_at_all_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    if (members[member][i].after == 0) return false;
    members[member][i].after = 0;
    return true;
  });
}

TEST_P(Mutants, that_send_a_message_twice_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    const Step send = members[member][i];
    if (send.kind != Kind::send) return false;
    const Step receive = members[send.peer][receive_of(members, member, i)];
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
    const size_t place = receive_of(members, member, i);
    const Step receive = members[send.peer][place];
    const int other = (send.peer + 1) % static_cast<int>(members.size());
    if (other == member) return false;
    erase(members[send.peer], place);
    send.peer = other;
    members[other].push_back(receive);
    return true;
  });
}

TEST_P(Mutants, that_send_another_slot_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step& send = members[member][i];
    if (send.kind != Kind::send) return false;
    Step& receive = members[send.peer][receive_of(members, member, i)];
    send.here.index = receive.there.index = (send.here.index + 1) % static_cast<int>(members.size());
    return true;
  });
}

TEST_P(Mutants, that_write_another_slot_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step& send = members[member][i];
    if (send.kind != Kind::send) return false;
    Step& receive = members[send.peer][receive_of(members, member, i)];
    send.there.index = receive.here.index = (send.there.index + 1) % static_cast<int>(members.size());
    return true;
  });
}

TEST_P(Mutants, that_wait_for_a_later_step_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Step& send = members[member][i];
    if (send.kind != Kind::send) return false;
    send.after = static_cast<int>(i) + 1;
    return true;
  });
}

// To the end of the array, there to wait for everything before it.
void postpone(Steps& steps, size_t i) {
  Step step = steps[i];
  erase(steps, i);
  step.after = static_cast<int>(steps.size());
  steps.push_back(step);
}

TEST_P(Mutants, in_which_two_members_send_only_when_the_other_has_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    const Step send = members[member][i];
    if (send.kind != Kind::send) return false;
    Steps& peer = members[send.peer];
    const auto back = std::ranges::find_if(peer, [&](const Step& s) { return s.kind == Kind::send && s.peer == member; });
    if (back == peer.end()) return false;
    postpone(peer, static_cast<size_t>(back - peer.begin()));
    postpone(members[member], i);
    return true;
  });
}

TEST_P(Mutants, that_take_the_messages_of_a_peer_in_another_order_are_refused) {
  expect_all_refused([](Members& members, int member, size_t i) {
    Steps& steps = members[member];
    const auto is_next = [&](const Step& s) { return s.kind == Kind::receive && s.peer == steps[i].peer; };
    const auto next = std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1, steps.end(), is_next);
    if (steps[i].kind != Kind::receive || next == steps.end()) return false;
    std::swap(steps[i], *next);
    return true;
  });
}

TEST_P(Mutants, that_add_when_all_has_been_sent_and_received_are_refused_where_the_sum_goes_on) {
  expect_all_refused([](Members& members, int member, size_t i) {
    const auto sends_it = [&](const Step& step) { return step.after > static_cast<int>(i); };
    if (members[member][i].kind != Kind::add || !std::ranges::any_of(members[member], sends_it)) return false;
    postpone(members[member], i);
    members[member].back().after = 0;
    return true;
  });
}

INSTANTIATE_TEST_SUITE_P(Plan, Mutants, ::testing::ValuesIn(kCatalog<Project>), name_of_case);

}  // namespace
}  // namespace fccl::core::plan
