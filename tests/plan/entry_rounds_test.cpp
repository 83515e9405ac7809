// Tests that every member hears of all, and has what it takes by one way, in as few rounds as it should be.
#include "plan/entry_rounds.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <vector>

namespace fccl::core::plan {
namespace {

constexpr int kMost = 70;

using Set = std::set<int>;
using Content = std::tuple<int, int>;  // of a source, for a taker

// Plays all rounds in lockstep. Calls `heard` before each round and after the last one, with whom each member has heard of.
template <class Use>
void play(int members, bool by_dissemination, Use&& heard) {
  const EntryRounds rounds(members, by_dissemination);
  std::vector<Set> known;
  for (int member = 0; member < members; ++member) known.push_back({member});
  for (int round = 0;; ++round) {
    heard(round, known);
    if (round == rounds.count()) return;
    const std::vector<Set> before = known;
    for (int sender = 0; sender < members; ++sender) {
      ASSERT_TRUE(rounds.may_tell(round, round));
      Set& of_receiver = known[static_cast<size_t>(rounds.after(sender, rounds.distance(round)))];
      const Set& told = before[static_cast<size_t>(sender)];
      if (by_dissemination)
        of_receiver.insert(told.begin(), told.end());
      else
        of_receiver.insert(sender);
    }
  }
}

void expect_knowledge(int members, bool by_dissemination) {
  const EntryRounds rounds(members, by_dissemination);
  play(members, by_dissemination, [&](int round, const std::vector<Set>& known) {
    for (int me = 0; me < members; ++me)
      for (int other = 0; other < members; ++other)
        ASSERT_EQ(known[static_cast<size_t>(me)].contains(other), rounds.round_of(rounds.before(me, other)) < round)
            << members << " members, " << other << " by " << me << " before round " << round;
    if (round == rounds.count())
      for (const Set& all : known) ASSERT_EQ(static_cast<int>(all.size()), members);
  });
}

TEST(EntryRounds, say_of_whom_a_member_has_heard) {
  for (int members = 1; members <= kMost; ++members)
    for (const bool by_dissemination : {false, true}) expect_knowledge(members, by_dissemination);
}

TEST(EntryRounds, are_the_logarithm_of_the_members_by_dissemination) {
  for (const auto& [members, rounds] :
       std::vector<std::pair<int, int>>{{1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {9, 4}, {64, 6}, {65, 7}, {4096, 12}})
    EXPECT_EQ(EntryRounds(members, true).count(), rounds) << members << " members";
  EXPECT_EQ(EntryRounds(9, false).count(), 8);
}

// A message of 4 KiB costs far more than the latency, so fewer messages win.
TEST(EntryRounds, go_by_dissemination_where_a_message_has_room_for_what_its_sender_passes_on) {
  const CostConstants costs{.latency = 1e-6, .message = 1e-5};
  const auto goes = [&](int members, size_t content) {
    return EntryRounds::of_call(members, row_of(fcclCollAllReduce), content, payload_bytes_of(members), costs)
        .is_by_dissemination();
  };
  for (const int members : {4, 5, 8}) EXPECT_TRUE(goes(members, kContentBytes)) << members;
  for (const int members : {16, 33, 64}) EXPECT_FALSE(goes(members, kContentBytes)) << members;
  EXPECT_TRUE(goes(16, kContentBytes / 2));
  EXPECT_TRUE(goes(64, 512));
  EXPECT_FALSE(goes(65, 512));
}

// Eight members send 7 contents each, or by dissemination 12 in three messages of 4.
TEST(EntryRounds, send_on_what_differs_for_each_member_where_the_wire_is_fast_enough) {
  const size_t room = payload_bytes_of(8);
  const auto goes = [&](fcclColl_t collective, size_t content, double wire_byte) {
    const CostConstants costs{.latency = 1e-6, .message = 1e-5, .wire_byte = wire_byte};
    return EntryRounds::of_call(8, row_of(collective), content, room, costs).is_by_dissemination();
  };
  for (const fcclColl_t collective : {fcclCollAlltoAll, fcclCollReduceScatter}) {
    EXPECT_EQ(EntryRounds::passed_on(8, row_of(collective)), 5);
    EXPECT_TRUE(goes(collective, 4096, 1e-10));
    EXPECT_FALSE(goes(collective, 4096, 8e-9));
    EXPECT_TRUE(goes(collective, 512, 8e-9));
    EXPECT_FALSE(goes(collective, 4104, 1e-10));
  }
  EXPECT_EQ(EntryRounds::passed_on(8, row_of(fcclCollAllGather)), 0);
  EXPECT_TRUE(goes(fcclCollAllGather, 4096, 8e-9));
}

TEST(EntryRounds, let_nobody_tell_of_whom_it_has_not_heard) {
  EXPECT_TRUE(EntryRounds(8, true).may_tell(0, 0));
  EXPECT_FALSE(EntryRounds(8, true).may_tell(1, 0));
  EXPECT_FALSE(EntryRounds(8, true).may_tell(2, 1));
  EXPECT_TRUE(EntryRounds(8, false).may_tell(6, 0));
}

// Every message carries only what its sender has, every taker gets all once, and no message more than it holds.
void expect_contents(int members, bool by_dissemination, const Collective& row, int root) {
  const EntryRounds rounds(members, by_dissemination);
  std::vector<std::set<Content>> held(static_cast<size_t>(members));
  for (int round = 0; round < rounds.count(); ++round) {
    std::vector<std::set<Content>> come(held.size());
    for (int sender = 0; sender < members; ++sender) {
      const int receiver = rounds.after(sender, rounds.distance(round));
      size_t contents = 0;
      for (int i = 0; i < rounds.sources(round); ++i) {
        const int source = rounds.before(sender, i);
        size_t takers = 0;
        rounds.for_each_taker(round, source, receiver, {row, root}, [&](int taker) {
          const Content content{source, taker};
          ASSERT_TRUE(source == sender || held[static_cast<size_t>(sender)].contains(content))
              << row.name << ", " << members << " members: " << sender << " has nothing of " << source << " for " << taker;
          ASSERT_FALSE(held[static_cast<size_t>(receiver)].contains(content)) << row.name << ", " << members << " members";
          ASSERT_TRUE(come[static_cast<size_t>(receiver)].insert(content).second);
          ASSERT_EQ(rounds.round_of(rounds.before(receiver, source)), round);
          ++takers;
        });
        ASSERT_EQ(rounds.has_taker(round, source, receiver, {row, root}), takers > 0) << row.name << ", root " << root;
        contents += row.input == Extent::one_block ? std::min<size_t>(takers, 1) : takers;
      }
      ASSERT_LE(contents, static_cast<size_t>(EntryRounds::most_contents(members, row))) << row.name << ", " << members;
    }
    for (size_t member = 0; member < held.size(); ++member) held[member].merge(come[member]);
  }
  for (int source = 0; source < members; ++source)
    for (int taker = 0; taker < members; ++taker)
      if (source != taker && row.moves(source, taker, root))
        ASSERT_TRUE((held[static_cast<size_t>(taker)].contains({source, taker})))
            << row.name << ", " << members << " members, root " << root << ": from " << source << " to " << taker;
}

TEST(EntryRounds, bring_every_taker_what_it_takes_once) {
  for (int members = 1; members <= 33; ++members)
    for (const bool by_dissemination : {false, true})
      for (const Collective& row : kCollectives)
        for (const int root : std::set<int>{0, members / 3, members - 1}) {
          expect_contents(members, by_dissemination, row, root);
          if (HasFatalFailure()) return;
        }
}

}  // namespace
}  // namespace fccl::core::plan
