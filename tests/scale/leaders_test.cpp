// The link of the leaders of 512 hosts, each on a thread: how a failure and a death reach all of them.
#include <fmt/format.h>

#include <algorithm>

#include "scale/many_descriptors.h"
#include "scale/tapped_sends.h"
#include "unit/host_link/linking.h"

namespace fccl::core::testing {
namespace {

constexpr int kHosts = 512;
// Far less than the deadline of a call, and enough for 512 threads on a busy machine.
constexpr auto kSoon = 5s;

uint64_t messages_so_far() {
  uint64_t messages = 0;
  for (const auto& [thread, sends] : sends_of_threads()) messages += sends.messages;
  return messages;
}

TEST(LongLeaders, of_512_hosts_hear_of_a_failure_soon_and_by_one_message_each) {
  if (!has_descriptors(kHosts)) GTEST_SKIP() << "this process may have too few descriptors";
  Linked linked(kHosts);
  constexpr int kTeller = 300;
  const Error failure{fcclInvalidUsage, "rank 600 called AllReduce, and rank 602 AllGather"};
  forget_sends();
  const auto begin = Clock::now();
  tell_failure(*linked.links[kTeller], failure);
  for (int host = 0; host < kHosts; ++host) {
    if (host == kTeller) continue;
    EXPECT_EQ(linked.heard[host].first(1), std::vector{"failed: " + failure.message}) << host;
  }
  EXPECT_LT(Clock::now() - begin, kSoon);
  // A message is counted a moment after it has left.
  for (const Deadline until = Deadline::after(kSoon); messages_so_far() < kHosts - 1 && !until.passed();)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(messages_so_far(), kHosts - 1);
}

TEST(LongLeaders, of_512_hosts_hear_soon_that_one_of_them_was_killed) {
  NOT_UNDER_THREAD_SANITIZER();
  if (!has_descriptors(kHosts)) GTEST_SKIP() << "this process may have too few descriptors";
  constexpr int kKilled = 200;
  Foreign linked(kKilled, kHosts);
  const auto begin = Clock::now();
  linked.kill();
  const std::string expected = "cut: " + std::to_string(leader_of(kKilled)) + " broken";
  for (int host = 0; host < kHosts; ++host) {
    if (host == kKilled) continue;
    EXPECT_EQ(linked.heard[host].first(1), std::vector{expected}) << host;
  }
  EXPECT_LT(Clock::now() - begin, kSoon);
}

TEST(LongLeaders, of_512_hosts_hear_soon_of_a_killed_leader_that_led_others_and_who_is_unheard_of_without_it) {
  NOT_UNDER_THREAD_SANITIZER();
  if (!has_descriptors(kHosts)) GTEST_SKIP() << "this process may have too few descriptors";
  constexpr int kKilled = 5;
  Foreign linked(kKilled, kHosts);
  const std::vector<int> behind = linked.hosts.tree.subtree_of(kKilled);
  EXPECT_EQ(behind.size(), 17U);
  const auto begin = Clock::now();
  linked.kill();
  for (int host = 0; host < kHosts; ++host) {
    if (host == kKilled) continue;
    std::vector<std::string> expected{"cut: " + std::to_string(leader_of(kKilled)) + " broken"};
    const bool is_behind = std::ranges::find(behind, host) != behind.end();
    for (int other = 0; other < kHosts; ++other)
      if (other != kKilled && other != host && (is_behind || std::ranges::find(behind, other) != behind.end()))
        expected.push_back(fmt::format("unheard: {} through {}", leader_of(other), leader_of(kKilled)));
    EXPECT_EQ(linked.heard[host].first(expected.size()), expected) << host;
  }
  EXPECT_LT(Clock::now() - begin, kSoon);
}

}  // namespace
}  // namespace fccl::core::testing
