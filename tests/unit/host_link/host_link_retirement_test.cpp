// Tests of a link between hosts that goes on when its leader has left.
#include <condition_variable>
#include <memory>

#include "host_link/host_link.h"
#include "linking.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

using Lines = std::vector<std::string>;

// Links of three hosts; each tells of a rank of its host when the test says that it is gone.
class Retirement : public testing::Test {
 protected:
  static constexpr int kHosts = 3;

  Retirement() {
    on_all(kHosts, [&](int host) {
      auto met = hosts.meet(host);
      ASSERT_TRUE(met) << met.error().message;
      links[host] = std::move(*met);
      LinkEvents events = heard[host].events();
      events.look = [this, host, held = std::shared_ptr<void>(nullptr, [this](void*) { count_ended(); })] {
        const std::lock_guard lock(mutex);
        LinkNews news;
        for (const Departure& departure : gone)
          if (hosts.host_of[departure.rank] == host) news.departures.push_back(departure);
        return news;
      };
      Descriptor wake = make_wake();
      wakes[host] = Descriptor(::dup(wake.get()));
      ASSERT_TRUE(links[host]->start(std::move(wake), {}, std::move(events)));
    });
  }
  // Ends the links that are still there before the listeners that they tell.
  void TearDown() override {
    for (int rank = 0; rank < kHosts * kRanksPerHost; ++rank) go(rank, PeerStatus::left);
    for (auto& link : links) link.reset();
    // The handlers of a link that has retired live as long as its thread.
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 10s, [&] { return ended == kHosts; })) << "a retired link goes on";
  }

  void go(int rank, PeerStatus how) {
    const std::lock_guard lock(mutex);
    gone.push_back({rank, how});
    ::eventfd_write(wakes[hosts.host_of[rank]].get(), 1);
  }
  void count_ended() {
    const std::lock_guard lock(mutex);
    ++ended;
    changed.notify_all();
  }
  void retire_leader(int host, std::chrono::milliseconds most = 1h) {
    go(leader_of(host), PeerStatus::left);
    HostLink::retire(std::move(links[host]), most);
  }

  Hosts hosts{kHosts};
  std::vector<Heard> heard{kHosts};
  std::mutex mutex;
  std::condition_variable changed;
  int ended = 0;  // links whose handlers are destroyed
  std::vector<Departure> gone;
  std::vector<Descriptor> wakes{kHosts};
  std::vector<std::unique_ptr<HostLink>> links{kHosts};
};

TEST_F(Retirement, tells_of_the_other_ranks_of_its_host_and_says_goodbye_after_the_last) {
  retire_leader(2);
  for (const int host : {0, 1}) EXPECT_EQ(heard[host].first(1), Lines{"gone: 4 left"}) << host;
  std::this_thread::sleep_for(50ms);
  for (const int host : {0, 1}) EXPECT_EQ(heard[host].all(), Lines{"gone: 4 left"}) << host;
  go(5, PeerStatus::died);
  for (const int host : {0, 1}) EXPECT_EQ(heard[host].first(3), (Lines{"gone: 4 left", "gone: 5 died", "cut: 4 goodbye"}));
}

TEST_F(Retirement, goes_on_hearing_for_the_other_ranks_of_its_host) {
  retire_leader(2);
  tell_gone(*links[1], 3, PeerStatus::died);
  EXPECT_EQ(heard[2].first(1), Lines{"gone: 3 died"});
}

TEST_F(Retirement, of_the_top_passes_on_what_others_tell_until_only_one_of_them_is_left) {
  go(1, PeerStatus::left);
  retire_leader(0);
  EXPECT_EQ(heard[1].first(2), (Lines{"gone: 1 left", "gone: 0 left"}));
  tell_gone(*links[2], 5, PeerStatus::died);
  EXPECT_EQ(heard[1].first(3).back(), "gone: 5 died");
  links[2].reset();
  EXPECT_EQ(heard[1].first(5), (Lines{"gone: 1 left", "gone: 0 left", "gone: 5 died", "cut: 4 goodbye", "cut: 0 goodbye"}));
}

TEST(RetirementInATree, passes_on_what_others_tell_through_a_host_that_has_left) {
  // The top has the children 1 and 2, and host 1 has 3 and 4.
  Linked linked(5, 2);
  for (const int rank : {2, 3}) tell_gone(*linked.links[1], rank, PeerStatus::left);
  HostLink::retire(std::move(linked.links[1]), 1h);
  tell_gone(*linked.links[3], 6, PeerStatus::died);
  for (const int host : {0, 2, 4})
    EXPECT_EQ(linked.heard[host].first(3), (Lines{"gone: 2 left", "gone: 3 left", "gone: 6 died"}));
  tell_gone(*linked.links[2], 4, PeerStatus::died);
  for (const int host : {0, 3, 4}) EXPECT_EQ(linked.heard[host].first(host == 3 ? 3 : 4).back(), "gone: 4 died") << host;
  // The retired link ends when it has only the top left.
  linked.links[3].reset();
  EXPECT_EQ(linked.heard[0].first(5).back(), "cut: 6 goodbye");
  linked.links[4].reset();
  EXPECT_EQ(linked.heard[0].first(7).back(), "cut: 2 goodbye");
}

TEST_F(Retirement, has_an_end) {
  retire_leader(2, 100ms);
  for (const int host : {0, 1}) EXPECT_EQ(heard[host].first(2), (Lines{"gone: 4 left", "cut: 4 goodbye"})) << host;
}

TEST_F(Retirement, ends_with_a_failure_of_the_communicator) {
  retire_leader(2);
  EXPECT_EQ(heard[0].first(1), Lines{"gone: 4 left"});
  tell_failure(*links[1], {fcclTimeout, "too late"});
  EXPECT_EQ(heard[2].first(1), Lines{"failed: too late"});
  EXPECT_EQ(heard[0].first(3), (Lines{"gone: 4 left", "failed: too late", "cut: 4 goodbye"}));
}

TEST_F(Retirement, of_the_last_rank_of_a_host_is_its_goodbye) {
  go(5, PeerStatus::left);
  retire_leader(2);
  for (const int host : {0, 1}) EXPECT_EQ(heard[host].first(3), (Lines{"gone: 5 left", "gone: 4 left", "cut: 4 goodbye"}));
}

TEST_F(Retirement, of_all_at_once_takes_nobody_for_dead) {
  on_all(kHosts, [&](int host) { retire_leader(host); });
  for (const int rank : {1, 3, 5}) go(rank, PeerStatus::left);
  std::this_thread::sleep_for(50ms);
  for (const Heard& each : heard)
    for (const std::string& line : each.all()) EXPECT_EQ(line.find("broken"), std::string::npos) << line;
}

TEST(RetirementOfALink, that_never_started_is_its_end) {
  const Census census;
  Hosts hosts(2);
  on_all(2, [&](int host) {
    auto link = hosts.meet(host);
    ASSERT_TRUE(link) << link.error().message;
    HostLink::retire(std::move(*link), 1h);
  });
}

}  // namespace
}  // namespace fccl::core
