// Checks one member's steps against stated ones, for small groups.
#include "plan/project.h"

#include <gtest/gtest.h>

#include "plan/catalog.h"

namespace fccl::core::plan {
namespace {

Steps told_steps(void (*tell)(Group, Project&), Group group, int member) {
  Project sink(group, member);
  tell(group, sink);
  return sink.take();
}

// Returns texts such as "send data 1 to 2 after 3", "receive parts 0..1 from 2", "add data 0".
std::string in_words(const Step& step) {
  const std::string space = step.here.space == Space::data ? " data " : " parts ";
  const std::string range = step.count == 1 ? "" : ".." + std::to_string(step.here.index + step.count - 1);
  const std::string slots = space + std::to_string(step.here.index) + range;
  const std::string after = step.after == 0 ? "" : " after " + std::to_string(step.after);
  if (step.kind == Kind::add) return "add" + slots;
  if (step.kind == Kind::send) return "send" + slots + " to " + std::to_string(step.peer) + after;
  return "receive" + slots + " from " + std::to_string(step.peer) + after;
}

std::vector<std::string> in_words(const Steps& steps) {
  std::vector<std::string> words;
  for (const Step& step : steps) words.push_back(in_words(step));
  return words;
}

using Words = std::vector<std::string>;

TEST(Project, of_a_pairwise_reduce_scatter_adds_when_all_parts_are_there) {
  EXPECT_EQ(in_words(told_steps(pairwise_reduce_scatter, {3}, 0)),
            (Words{"send data 1 to 1", "receive parts 2 from 2", "send data 2 to 2", "receive parts 1 from 1", "add data 0"}));
}

TEST(Project, of_a_pairwise_all_reduce_sends_on_only_what_is_added) {
  EXPECT_EQ(
      in_words(told_steps(pairwise_all_reduce, {2}, 1)),
      (Words{"send data 0 to 0", "receive parts 0 from 0", "add data 1", "send data 1 to 0 after 3", "receive data 0 from 0"}));
}

TEST(Project, of_bruck_sends_more_in_each_round) {
  EXPECT_EQ(in_words(told_steps(bruck_all_gather, {5}, 4)),
            (Words{"send data 4 to 0", "receive data 3 from 3", "send data 3..4 to 1 after 2", "receive data 1..2 from 2",
                   "send data 4 to 3", "receive data 0 from 0"}));
}

TEST(Project, of_a_tree_sends_on_what_has_come) {
  EXPECT_EQ(in_words(told_steps(tree_broadcast, {6, 2}, 3)),
            (Words{"receive data 0 from 2", "send data 0 to 5 after 1", "send data 0 to 1 after 1"}));
}

TEST(Project, of_a_group_of_one_is_at_most_an_addition) {
  for (const auto& algorithm : kCatalog<Project>)
    for (const Step& step : told_steps(algorithm.tell, {1}, 0)) EXPECT_EQ(step.kind, Kind::add) << algorithm.name;
}

TEST(Project, keeps_one_plan_of_4096_hosts_within_10_megabytes) {
  for (int algorithm = 0; algorithm < static_cast<int>(kCatalog<Project>.size()); ++algorithm)
    EXPECT_LT(steps_of(algorithm, {4096}, 7).capacity() * sizeof(Step), 10'000'000U) << algorithm;
}

// A sink that counts calls instead of measuring time, which depends on the machine.
struct Counter {
  int of;
  int told = 0;
  int member() const { return of; }
  void transfer(const Transfer&) { ++told; }
  void add(const Addition&) { ++told; }
};

TEST(Project, of_a_place_in_the_catalog_is_that_algorithms) {
  for (size_t i = 0; i < kCatalog<Project>.size(); ++i)
    EXPECT_EQ(in_words(steps_of(static_cast<int>(i), {5, 2}, 1)), in_words(told_steps(kCatalog<Project>[i].tell, {5, 2}, 1)));
}

TEST(Project, hears_of_no_more_than_twenty_thousand_things_for_a_plan_of_4096_hosts) {
  for (const auto& algorithm : kCatalog<Counter>) {
    Counter sink{7};
    algorithm.tell({4096}, sink);
    EXPECT_LT(sink.told, 5 * 4096) << algorithm.name;
  }
}

}  // namespace
}  // namespace fccl::core::plan
