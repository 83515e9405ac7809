// Tests the rounds of a relay against the table in relay_rounds.h, and their order.
#include "hierarchical/relay_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace fccl::core {
namespace {

using Share = RelayRounds::Share;
using Condition = bool (*)(const RelayFacts& facts);

const std::map<std::string, Condition> kHostsOfTable{
    {"none", [](const RelayFacts&) { return false; }},
    {"all hosts", [](const RelayFacts&) { return true; }},
    {"all hosts, if unequal", [](const RelayFacts& facts) { return !facts.is_even; }},
    {"root's host", [](const RelayFacts& facts) { return facts.root_is_here; }},
    {"root's host; all, if unequal", [](const RelayFacts& facts) { return facts.root_is_here || !facts.is_even; }},
    {"other hosts", [](const RelayFacts& facts) { return !facts.root_is_here; }},
    {"other hosts, if unequal", [](const RelayFacts& facts) { return !facts.root_is_here && !facts.is_even; }},
};
const std::map<std::string, Condition> kFedByUp{
    {"none", [](const RelayFacts&) { return false; }},
    {"all", [](const RelayFacts&) { return true; }},
    {"all, if unequal or the plan hands on", [](const RelayFacts& facts) { return !facts.is_even || facts.hands_on; }},
    {"root's host, not the root", [](const RelayFacts& facts) { return facts.root_is_here && !facts.is_root; }},
    {"other hosts, if unequal", [](const RelayFacts& facts) { return !facts.root_is_here && !facts.is_even; }},
    {"hosts with ranks left over", [](const RelayFacts& facts) { return facts.ranks > facts.columns; }},
};
const std::map<std::string, Share> kShares{
    {"all", Share::all}, {"other hosts'", Share::of_other_hosts}, {"this host's", Share::of_this_host}};

// Returns the cells of a line of the table, which two spaces or more separate.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t begin = line.find_first_not_of(' '); begin != std::string::npos; begin = line.find_first_not_of(' ', begin)) {
    const size_t end = std::min(line.find("  ", begin), line.size());
    cells.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return cells;
}

// Returns the cells behind a collective's name in the table: up, down, share, fed by up.
std::vector<std::string> row_in_table(const std::string& name) {
  std::ifstream header(FCCL_SOURCE_DIR "/src/hierarchical/relay_rounds.h");
  for (std::string line; std::getline(header, line);) {
    if (!line.starts_with("//  ")) continue;
    std::vector<std::string> cells = cells_of(line.substr(2));
    if (cells.size() == 5 && cells.front() == name) return {cells.begin() + 1, cells.end()};
  }
  return {};
}

bool is_possible(const RelayFacts& facts) {
  return facts.ranks >= facts.columns && (!facts.is_even || facts.ranks == facts.columns) &&
         (!facts.is_root || facts.root_is_here);
}

// Returns all that a rank may see on a host with `ranks` ranks or more.
std::vector<RelayFacts> all_facts(const Collective& row, int ranks) {
  std::vector<RelayFacts> all;
  for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
    for (int here = ranks; here <= 3; ++here)
      for (int columns = 1; columns <= 3; ++columns) {
        const RelayFacts facts{here, columns, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
        if (is_possible(facts) && (row.is_rooted() || !facts.root_is_here)) all.push_back(facts);
      }
  return all;
}

std::string text_of(const RelayFacts& facts) {
  return std::to_string(facts.ranks) + " ranks in " + std::to_string(facts.columns) + " columns" +
         (facts.is_even ? "" : ", unequal") +
         (facts.is_root        ? ", the root"
          : facts.root_is_here ? ", the root's host"
                               : "") +
         (facts.hands_on ? ", handed on" : "");
}

class RoundsOf : public ::testing::TestWithParam<int> {
 protected:
  const Collective& row = kCollectives[static_cast<size_t>(GetParam())];
  // The table has the collectives of equal counts.
  const std::vector<std::string> cells = row_in_table(row_of(even_form(static_cast<fcclColl_t>(GetParam()))).name);
};

TEST_P(RoundsOf, a_host_with_several_ranks_are_those_of_the_table) {
  ASSERT_EQ(cells.size(), 4u) << row.name;
  for (const RelayFacts& facts : all_facts(row, 2)) {
    const RelayRounds rounds = rounds_of(row, facts);
    EXPECT_EQ(rounds.has_up, kHostsOfTable.at(cells[0])(facts)) << row.name << " on " << text_of(facts);
    EXPECT_EQ(rounds.has_down, kHostsOfTable.at(cells[1])(facts)) << row.name << " on " << text_of(facts);
    EXPECT_EQ(rounds.feeds_wire, kFedByUp.at(cells[3])(facts)) << row.name << " on " << text_of(facts);
    if (!rounds.has_down) continue;
    EXPECT_EQ(rounds.share, kShares.at(cells[2])) << row.name;
  }
}

TEST_P(RoundsOf, a_host_close_only_if_it_has_ranks_left_over) {
  for (const RelayFacts& facts : all_facts(row, 1))
    EXPECT_EQ(rounds_of(row, facts).closes, facts.ranks > facts.columns) << text_of(facts);
}

// A block that the wire brings into staging memory goes down even to a rank that is alone.
TEST_P(RoundsOf, a_host_of_one_rank_bring_down_only_blocks_of_unequal_hosts_that_are_scattered) {
  const bool scatters = row.input == Extent::block_per_rank && !row.has_pairs();
  for (const RelayFacts& facts : all_facts(row, 1)) {
    if (facts.ranks > 1) continue;
    const bool comes = row.givers == Who::all || !facts.root_is_here;
    EXPECT_EQ(rounds_of(row, facts).has_down, scatters && comes && !facts.is_even) << text_of(facts);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RoundsOf, ::testing::Range(0, static_cast<int>(kCollectives.size())),
                         [](const auto& collective) { return row_of(static_cast<fcclColl_t>(collective.param)).name; });

std::vector<std::string> order_of(RoundSequence sequence) {
  std::vector<std::string> order;
  while (sequence.next()) {
    const Round& round = sequence.round();
    if (round.kind == RoundKind::closing)
      order.emplace_back("closing");
    else
      order.push_back((round.kind == RoundKind::up ? "up " : "down ") + std::to_string(round.slice) + "." +
                      std::to_string(round.turn) + (sequence.is_last_turn() ? "" : " and more"));
  }
  EXPECT_EQ(sequence.ended(), order.size());
  return order;
}

using Order = std::vector<std::string>;

TEST(RoundSequence, brings_a_slice_down_when_four_more_have_gone_up) {
  EXPECT_EQ(order_of({6, {1, 1}, false}), (Order{"up 0.0", "up 1.0", "up 2.0", "up 3.0", "up 4.0", "down 0.0", "up 5.0",
                                                 "down 1.0", "down 2.0", "down 3.0", "down 4.0", "down 5.0"}));
}

TEST(RoundSequence, makes_all_turns_of_a_slice_before_it_goes_on) {
  EXPECT_EQ(order_of({2, {2, 3}, false}),
            (Order{"up 0.0 and more", "up 0.1", "up 1.0 and more", "up 1.1", "down 0.0 and more", "down 0.1 and more",
                   "down 0.2", "down 1.0 and more", "down 1.1 and more", "down 1.2"}));
}

TEST(RoundSequence, leaves_out_the_kind_that_takes_no_turn) {
  EXPECT_EQ(order_of({2, {1, 0}, false}), (Order{"up 0.0", "up 1.0"}));
  EXPECT_EQ(order_of({2, {0, 1}, false}), (Order{"down 0.0", "down 1.0"}));
  EXPECT_EQ(order_of({2, {0, 0}, false}), Order{});
}

TEST(RoundSequence, closes_once_behind_all_slices) {
  EXPECT_EQ(order_of({1, {1, 1}, true}), (Order{"up 0.0", "down 0.0", "closing"}));
  EXPECT_EQ(order_of({0, {0, 0}, true}), Order{"closing"});
}

}  // namespace
}  // namespace fccl::core
