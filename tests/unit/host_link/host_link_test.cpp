// Tests of what a started link between hosts tells: failures, departures, ends of hosts, and calls to look.
#include "host_link/host_link.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "linking.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

using Lines = std::vector<std::string>;

Lines sorted(Lines lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(HostLink, a_failure_told_by_any_host_reaches_every_other_once) {
  for (const int teller : {0, 2}) {
    const Census census;
    Linked linked(5);
    tell_failure(*linked.links[teller], {fcclRemoteError, "rank 5 is lost"});
    tell_failure(*linked.links[teller], {fcclRemoteError, "and again"});
    tell_gone(*linked.links[teller], leader_of(teller) + 1, PeerStatus::died);
    const std::string gone = "gone: " + std::to_string(leader_of(teller) + 1) + " died";
    for (int host = 0; host < 5; ++host) {
      if (host == teller) continue;
      EXPECT_EQ(linked.heard[host].first(2), (Lines{"failed: rank 5 is lost", gone})) << host;
      // It has failed already.
      tell_failure(*linked.links[host], {fcclRemoteError, "rank 5 is lost there, too"});
    }
    // Whatever else were told would have come before this.
    const int last = teller == 0 ? 1 : 0;
    tell_gone(*linked.links[last], leader_of(last), PeerStatus::left);
    EXPECT_EQ(linked.heard[teller].first(1), Lines{"gone: " + std::to_string(leader_of(last)) + " left"});
  }
}

TEST(HostLink, a_rank_that_is_gone_is_told_to_all_other_hosts_once_and_first_how_it_went_first) {
  Linked linked(4);
  tell_gone(*linked.links[3], 7, PeerStatus::left);
  tell_gone(*linked.links[3], 7, PeerStatus::died);
  tell_gone(*linked.links[3], 6, PeerStatus::died);
  for (const int host : {0, 1, 2}) EXPECT_EQ(linked.heard[host].first(2), (Lines{"gone: 7 left", "gone: 6 died"})) << host;
  tell_gone(*linked.links[0], 1, PeerStatus::left);
  for (const int host : {1, 2, 3}) EXPECT_EQ(linked.heard[host].first(host == 3 ? 1 : 3).back(), "gone: 1 left") << host;
}

TEST(HostLink, the_goodbye_of_a_host_is_told_to_all_others_after_its_last_words) {
  const Census census;
  Linked linked(4);
  tell_gone(*linked.links[2], 5, PeerStatus::left);
  linked.links[2].reset();
  for (const int host : {0, 1, 3}) EXPECT_EQ(linked.heard[host].first(2), (Lines{"gone: 5 left", "cut: 4 goodbye"})) << host;
}

TEST(HostLink, a_long_wait_reaches_all_others_when_it_begins_and_when_it_is_over) {
  Linked linked(3);
  tell_wait(*linked.links[1], 3, 0);
  for (const int host : {0, 2}) EXPECT_EQ(linked.heard[host].first(1), Lines{"waits: 3 for 0"}) << host;
  // Telling the same again changes nothing.
  tell_wait(*linked.links[1], 3, 0);
  tell_wait(*linked.links[1], 3, kNobody);
  for (const int host : {0, 2}) EXPECT_EQ(linked.heard[host].first(2), (Lines{"waits: 3 for 0", "waits: 3 for -1"})) << host;
}

TEST(HostLink, after_the_goodbye_of_the_top_nothing_more_is_heard_of_anybody) {
  Linked linked(4);
  tell_gone(*linked.links[0], 0, PeerStatus::left);
  linked.links[0].reset();
  for (const int host : {1, 2, 3}) {
    Lines expected{"gone: 0 left", "cut: 0 goodbye"};
    for (const int other : {1, 2, 3})
      if (other != host) expected.push_back("unheard: " + std::to_string(leader_of(other)) + " through 0");
    EXPECT_EQ(linked.heard[host].first(4), expected) << host;
  }
}

TEST(HostLink, when_all_leave_at_once_nobody_is_taken_for_dead) {
  for (int round = 0; round < 20; ++round) {
    Linked linked(5);
    on_all(5, [&](int host) { linked.links[host].reset(); });
    for (const Heard& heard : linked.heard)
      for (const std::string& line : heard.all()) EXPECT_EQ(line.find("broken"), std::string::npos) << line;
  }
}

TEST(HostLink, what_a_leader_at_the_bottom_of_a_tree_tells_reaches_every_other_once) {
  const Census census;
  Linked linked(kInTree, kTwoChildren);
  tell_gone(*linked.links[4], leader_of(4) + 1, PeerStatus::left);
  tell_wait(*linked.links[4], leader_of(4), leader_of(6));
  tell_failure(*linked.links[4], {fcclRemoteError, "rank 5 is lost"});
  tell_gone(*linked.links[4], leader_of(4), PeerStatus::died);
  for (const int host : {0, 1, 2, 3, 5, 6})
    EXPECT_EQ(linked.heard[host].first(4), (Lines{"gone: 9 left", "waits: 8 for 12", "failed: rank 5 is lost", "gone: 8 died"}))
        << host;
}

TEST(HostLink, a_leader_in_a_tree_that_says_goodbye_leaves_those_below_it_and_the_others_unheard_of_each_other) {
  Linked linked(kInTree, kTwoChildren);
  tell_gone(*linked.links[1], leader_of(1), PeerStatus::left);
  linked.links[1].reset();
  for (const int host : {0, 2, 5, 6})
    EXPECT_EQ(linked.heard[host].first(4),
              (Lines{"gone: 2 left", "cut: 2 goodbye", "unheard: 6 through 2", "unheard: 8 through 2"}))
        << host;
  EXPECT_EQ(linked.heard[3].first(7), (Lines{"gone: 2 left", "cut: 2 goodbye", "unheard: 0 through 2", "unheard: 4 through 2",
                                             "unheard: 8 through 2", "unheard: 10 through 2", "unheard: 12 through 2"}));
  // The others still hear each other.
  tell_gone(*linked.links[6], leader_of(6), PeerStatus::left);
  for (const int host : {0, 2, 5}) EXPECT_EQ(linked.heard[host].first(5).back(), "gone: 12 left") << host;
}

TEST(HostLink, a_leader_in_a_tree_that_is_killed_is_told_to_all_others_as_broken_off) {
  NOT_UNDER_THREAD_SANITIZER();
  Foreign linked(2, kInTree, kTwoChildren);
  linked.kill();
  for (const int host : {0, 1, 3, 4, 5, 6}) EXPECT_EQ(linked.heard[host].first(1).front(), "cut: 4 broken") << host;
}

TEST(HostLink, a_leader_that_is_killed_is_told_to_all_others_as_broken_off) {
  NOT_UNDER_THREAD_SANITIZER();
  Foreign linked(2);
  linked.kill();
  EXPECT_EQ(linked.heard[0].first(1), Lines{"cut: 4 broken"});
  EXPECT_EQ(linked.heard[1].first(1), Lines{"cut: 4 broken"});
}

TEST(HostLink, a_top_that_is_killed_leaves_the_others_unheard) {
  NOT_UNDER_THREAD_SANITIZER();
  Foreign linked(0);
  linked.kill();
  EXPECT_EQ(linked.heard[1].first(2), (Lines{"cut: 0 broken", "unheard: 4 through 0"}));
  EXPECT_EQ(linked.heard[2].first(2), (Lines{"cut: 0 broken", "unheard: 2 through 0"}));
}

// The faster one of two is held to a bound, since another program may keep one from its processor.
Clock::duration time_to_leave(std::unique_ptr<HostLink>& link) {
  const auto begin = Clock::now();
  link.reset();
  return Clock::now() - begin;
}

TEST(HostLink, a_stopped_leader_keeps_nobody_from_hearing_the_others_nor_from_leaving) {
  NOT_UNDER_THREAD_SANITIZER();
  Foreign linked(2);
  ::kill(linked.child, SIGSTOP);
  tell_gone(*linked.links[1], 3, PeerStatus::left);
  tell_failure(*linked.links[1], {fcclTimeout, "too late"});
  EXPECT_EQ(linked.heard[0].first(2), (Lines{"gone: 3 left", "failed: too late"}));
  tell_gone(*linked.links[0], 1, PeerStatus::died);
  EXPECT_EQ(linked.heard[1].first(1), Lines{"gone: 1 died"});
  EXPECT_LT(std::min(time_to_leave(linked.links[1]), time_to_leave(linked.links[0])), 100ms);
}

TEST(HostLink, a_stopped_top_keeps_nobody_from_leaving) {
  NOT_UNDER_THREAD_SANITIZER();
  Foreign linked(0);
  ::kill(linked.child, SIGSTOP);
  tell_failure(*linked.links[1], {fcclTimeout, "too late"});
  EXPECT_LT(std::min(time_to_leave(linked.links[1]), time_to_leave(linked.links[2])), 100ms);
}

TEST(HostLink, looks_when_its_host_asks_and_each_time_anew) {
  Hosts hosts(1);
  Heard heard;
  auto link = *hosts.meet(0);
  Descriptor wake = make_wake();
  const int written = wake.get();
  ASSERT_TRUE(link->start(std::move(wake), {}, heard.events()));
  Clock::duration fastest = 1h;
  for (size_t times = 1; times <= 3; ++times) {
    const auto begin = Clock::now();
    ASSERT_EQ(::eventfd_write(written, 1), 0);
    EXPECT_EQ(heard.first(times), Lines(times, "look"));
    fastest = std::min(fastest, Clock::now() - begin);
  }
  EXPECT_LT(fastest, 50ms);
}

TEST(HostLink, looks_once_when_a_watched_process_ends) {
  const pid_t child = ::fork();
  if (child == 0)
    while (true) ::pause();
  Hosts hosts(1);
  Heard heard;
  auto link = *hosts.meet(0);
  ASSERT_TRUE(link->start(make_wake(), {*ProcessWatch::of(::getpid()), *ProcessWatch::of(child)}, heard.events()));
  EXPECT_EQ(heard.all(), Lines{});
  const auto begin = Clock::now();
  ::kill(child, SIGKILL);
  EXPECT_EQ(heard.first(1), Lines{"look"});
  EXPECT_LT(Clock::now() - begin, 500ms);
  ::waitpid(child, nullptr, 0);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(heard.all(), Lines{"look"});
}

TEST(HostLink, what_a_look_finds_is_told_to_the_others_once) {
  Hosts hosts(2);
  std::vector<Heard> heard(2);
  std::vector<std::unique_ptr<HostLink>> links(2);
  on_all(2, [&](int host) { links[host] = *hosts.meet(host); });
  LinkEvents events = heard[1].events();
  events.look = [] { return LinkNews{Error{fcclTimeout, "too late"}, {{3, PeerStatus::left}}}; };
  Descriptor wake = make_wake();
  const int written = wake.get();
  ASSERT_TRUE(links[1]->start(std::move(wake), {}, std::move(events)));
  ASSERT_TRUE(links[0]->start(make_wake(), {}, heard[0].events()));
  ASSERT_EQ(::eventfd_write(written, 1), 0);
  EXPECT_EQ(heard[0].first(2), (Lines{"failed: too late", "gone: 3 left"}));
  ASSERT_EQ(::eventfd_write(written, 1), 0);
  links[1].reset();
  EXPECT_EQ(heard[0].first(3), (Lines{"failed: too late", "gone: 3 left", "cut: 2 goodbye"}));
}

// The processor time and context switches of this process so far.
struct Cost {
  static Cost now() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return {std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec),
            used.ru_nvcsw};
  }

  std::chrono::microseconds processor;
  long waits;
};

TEST(HostLink, sleeps_while_nothing_happens_also_after_an_end) {
  const pid_t child = ::fork();
  if (child == 0)
    while (true) ::pause();
  Linked linked(5);
  Hosts alone(1);
  Heard heard;
  auto link = *alone.meet(0);
  ASSERT_TRUE(link->start(make_wake(), {*ProcessWatch::of(child)}, heard.events()));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  heard.first(1);
  linked.links[4].reset();
  linked.heard[1].first(1);
  std::this_thread::sleep_for(20ms);
  const Cost before = Cost::now();
  std::this_thread::sleep_for(300ms);
  const Cost after = Cost::now();
  EXPECT_LT(after.processor - before.processor, 30ms);
  // This thread's one, and a few of a sanitizer's own.
  EXPECT_LT(after.waits - before.waits, 10);
}

TEST(HostLink, handlers_may_tell) {
  Hosts hosts(2);
  std::vector<Heard> heard(2);
  std::vector<std::unique_ptr<HostLink>> links(2);
  on_all(2, [&](int host) { links[host] = *hosts.meet(host); });
  LinkEvents events = heard[1].events();
  events.gone = [&](const Departure& departure) {
    tell_failure(*links[1], {fcclRemoteError, "rank " + std::to_string(departure.rank) + " is gone"});
  };
  ASSERT_TRUE(links[1]->start(make_wake(), {}, std::move(events)));
  ASSERT_TRUE(links[0]->start(make_wake(), {}, heard[0].events()));
  tell_gone(*links[0], 1, PeerStatus::died);
  EXPECT_EQ(heard[0].first(1), Lines{"failed: rank 1 is gone"});
}

TEST(HostLink, what_was_told_between_meeting_and_start_is_heard_after_it) {
  Hosts hosts(2);
  std::vector<Heard> heard(2);
  std::vector<std::unique_ptr<HostLink>> links(2);
  on_all(2, [&](int host) { links[host] = *hosts.meet(host); });
  tell_gone(*links[1], 3, PeerStatus::left);
  ASSERT_TRUE(links[1]->start(make_wake(), {}, heard[1].events()));
  links[1].reset();
  ASSERT_TRUE(links[0]->start(make_wake(), {}, heard[0].events()));
  EXPECT_EQ(heard[0].first(2), (Lines{"gone: 3 left", "cut: 2 goodbye"}));
}

TEST(HostLink, many_threads_tell_at_once) {
  Linked linked(3);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&linked, i] {
      tell_gone(*linked.links[i % 3], leader_of(i % 3) + i / 3 % 2, PeerStatus::left);
      tell_failure(*linked.links[i % 3], {fcclRemoteError, "failure " + std::to_string(i)});
    });
  threads.clear();
  for (int host = 0; host < 3; ++host) {
    Lines gone;
    for (int rank = 0; rank < 6; ++rank)
      if (rank / 2 != host) gone.push_back("gone: " + std::to_string(rank) + " left");
    Lines heard;
    for (const Deadline deadline = Deadline::after(10s); heard.size() < gone.size() && !deadline.passed();) {
      heard = sorted(linked.heard[host].all());
      std::erase_if(heard, [](const std::string& line) { return line.starts_with("failed"); });
    }
    EXPECT_EQ(heard, gone) << host;
  }
}

TEST(HostLink, a_fork_does_not_keep_a_connection_open) {
  Linked linked(3);
  const pid_t child = ::fork();
  if (child == 0)
    while (true) ::pause();
  linked.links[1].reset();
  EXPECT_EQ(linked.heard[0].first(1), Lines{"cut: 2 goodbye"});
  linked.links[0].reset();
  EXPECT_EQ(linked.heard[2].first(2), (Lines{"cut: 2 goodbye", "cut: 0 goodbye"}));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace fccl::core
