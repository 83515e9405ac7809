// Init between hosts: deaths between its roster and the meeting of its hosts, where nobody waits for the dead by pid or by
// connection, and its one deadline.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <thread>

#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// The last rank joins when all others have, some of which are stopped then, and so keep theirs before the hosts have met.
struct Scene {
  const char* name;
  OnHosts hosts;
  int last;
  std::vector<int> stopped;
  std::vector<int> killed;
  bool leaves_a_fork = false;

  bool stops(int rank) const { return std::ranges::count(stopped, rank) > 0; }
  bool kills(int rank) const { return std::ranges::count(killed, rank) > 0; }
  int others() const {
    int count = 0;
    for (int rank = 0; rank < hosts.ranks(); ++rank) count += stops(rank) || kills(rank) ? 0 : 1;
    return count;
  }
};

void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

// Notes of the whiteboard: when the killed were, and the stopped went on; how many have entered init, and how many are out;
// whether the rank has come that collects its host.
enum InitNote : int { kKilledAt, kWentOnAt, kIn, kOut, kCollects, kPids };

// Enough for what comes next to have come, also on a busy machine.
constexpr auto kSettling = 500ms;
constexpr int kLaw = 3 * static_cast<int>(kSecond);

class HostInit : public ::testing::TestWithParam<Scene> {
 protected:
  static Launch launch() {
    Launch launch = GetParam().hosts.launch();
    launch.killed = GetParam().killed;
    return launch;
  }
};

void send(const Seat& seat, const std::vector<int>& ranks, int signal) {
  for (const int rank : ranks) kill(static_cast<pid_t>(seat.board.notes[kPids + rank]), signal);
}

void wait_for(const std::atomic<int64_t>& note, int64_t value) {
  while (note < value) std::this_thread::sleep_for(1ms);
}

// By the last rank, while it is in init.
void direct(const Seat& seat, const Scene& scene) {
  std::this_thread::sleep_for(kSettling);
  seat.board.notes[kKilledAt] = now_ns();
  send(seat, scene.killed, SIGKILL);
  wait_for(seat.board.notes[kOut], scene.others());
  seat.board.notes[kWentOnAt] = now_ns();
  send(seat, scene.stopped, SIGCONT);
}

void expect_death(const Seat& seat, const Scene& scene, fcclResult_t result) {
  auto& notes = seat.board.notes;
  const std::string text = fcclGetLastError(nullptr);
  const bool stopped = scene.stops(seat.rank);
  EXPECT_LT(ms_since(notes[stopped ? kWentOnAt : kKilledAt]), kLaw) << text;
  if (!stopped) ++notes[kOut];
  EXPECT_EQ(result, fcclRemoteError) << text;
  EXPECT_TRUE(std::ranges::any_of(scene.killed, [&](int rank) { return text.find(name_of_rank(rank)) != std::string::npos; }))
      << text;
}

TEST_P(HostInit, reaches_every_rank_at_once_by_name) {
  run_ranks(launch(), [](const Seat& seat) {
    const Scene& scene = GetParam();
    auto& notes = seat.board.notes;
    const fcclUniqueId id = agree_on_id(seat);
    notes[kPids + seat.rank] = getpid();
    ++notes[kIn];
    std::thread director, parent;
    if (seat.rank == scene.last) {
      wait_for(notes[kIn], seat.ranks);
      std::this_thread::sleep_for(kSettling);
      send(seat, scene.stopped, SIGSTOP);
      director = std::thread([&] { direct(seat, scene); });
    } else if (scene.leaves_a_fork && scene.kills(seat.rank)) {
      parent = std::thread([&] {
        std::this_thread::sleep_for(kSettling / 2);
        leave_a_child_behind(5s);
      });
    }
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = 30'000 * kSlowdown;
    fcclComm_t comm = nullptr;
    const fcclResult_t result = fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config);
    if (scene.kills(seat.rank)) std::this_thread::sleep_for(30s);
    EXPECT_EQ(comm, nullptr);
    expect_death(seat, scene, result);
    if (director.joinable()) director.join();
  });
}

std::string name_of_scene(const ::testing::TestParamInfo<Scene>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(OfThe, HostInit,
                         ::testing::Values(Scene{"leader_that_hands_out", kTwoAndTwo, 1, {3}, {2}},
                                           Scene{"leader_that_does_not_come", kTwoAndTwo, 1, {2}, {2}},
                                           Scene{"host_whose_leader_hands_out", kTwoAndTwo, 1, {3}, {2, 3}},
                                           Scene{"mate_of_a_leader", kTwoAndTwo, 1, {3}, {3}},
                                           Scene{"mate_of_a_stopped_leader", kTwoAndTwo, 1, {2}, {3}},
                                           Scene{"hub", kTwoAndTwo, 2, {1}, {0}},
                                           Scene{"host_of_the_hub", kTwoAndTwo, 2, {1}, {0, 1}},
                                           Scene{"host_of_one_rank", kTwoAndOneAndOne, 1, {3}, {3}},
                                           Scene{"leader_that_met_the_hub_already", kOneAndTwoAndOne, 2, {3}, {1}},
                                           Scene{"leader_whose_fork_lives_on", kTwoAndTwo, 1, {3}, {2, 3}, true},
                                           Scene{"hub_whose_fork_lives_on", kTwoAndTwo, 2, {1}, {0, 1}, true}),
                         name_of_scene);

constexpr int kHub = 0, kMate = 1, kLeader = 2, kDirector = 3;
constexpr int kInitTakes = 4 * static_cast<int>(kSecond);

// By the director, while it is in init and the leader of its host is stopped. If another one is late, the hub meets that host
// late, and then waits for a rank of its own.
void delay(const Seat& seat, int late) {
  if (late != kLeader) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kInitTakes) / 2);
    send(seat, {late}, SIGSTOP);
    send(seat, {kLeader}, SIGCONT);
  }
  wait_for(seat.board.notes[kOut], seat.ranks - 1);
  send(seat, {late}, SIGCONT);
}

class HostInitDeadline : public ::testing::TestWithParam<int> {};

TEST_P(HostInitDeadline, is_one_for_all_that_is_waited_for_and_names_who_is_late) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) {
    const int late = GetParam();
    auto& notes = seat.board.notes;
    const fcclUniqueId id = agree_on_id(seat);
    notes[kPids + seat.rank] = getpid();
    ++notes[kIn];
    std::thread director;
    if (seat.rank == kDirector) {
      wait_for(notes[kIn], seat.ranks);
      std::this_thread::sleep_for(kSettling);
      send(seat, {kLeader}, SIGSTOP);
      director = std::thread([&] { delay(seat, late); });
    }
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = kInitTakes;
    fcclComm_t comm = nullptr;
    const int64_t begin = now_ns();
    EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), fcclTimeout);
    const std::string text = fcclGetLastError(nullptr);
    if (seat.rank != late) {
      EXPECT_LT(ms_since(begin), kInitTakes + kSecond) << text;
      EXPECT_NE(text.find(name_of_rank(late)), std::string::npos) << text;
      EXPECT_EQ(text.find("for " + name_of_rank(kHub)), std::string::npos) << text;
      EXPECT_NE(text.find("FCCL_INIT_TIMEOUT"), std::string::npos) << text;
      ++notes[kOut];
    }
    EXPECT_EQ(comm, nullptr);
    if (director.joinable()) director.join();
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(Late, HostInitDeadline, ::testing::Values(kMate, kLeader));

// So many ranks have collectors.
constexpr int kManyRanks = 66, kRanksOfEach = 22;

Launch launch_of_many(int of_each = kRanksOfEach) {
  OnHosts many{"66", {}};
  for (int rank = 0; rank < kManyRanks; ++rank) many.host_of.push_back(rank / of_each);
  Launch launch = many.launch();
  launch.limit = 150s;
  return launch;
}

// Makes a communicator of all ranks, tries it, and calls `act` with it.
void in_a_working_communicator(const Seat& seat, const std::function<void(fcclComm_t)>& act) {
  const fcclUniqueId id = agree_on_id(seat);
  fcclConfig_t config = config_of_tests();
  config.initTimeoutMs = 120'000;
  fcclComm_t made = nullptr;
  ASSERT_EQ(fcclCommInitRankConfig(&made, seat.ranks, id, seat.rank, &config), fcclSuccess) << fcclGetLastError(nullptr);
  const Comm comm(made);
  EXPECT_EQ(try_collective({.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 3'000}, seat.rank, seat.ranks, comm),
            "");
  act(comm);
}

TEST(LongHostInit, of_66_ranks_on_three_hosts_makes_a_communicator_that_works) {
  run_ranks(launch_of_many(), [](const Seat& seat) { in_a_working_communicator(seat, [](fcclComm_t) {}); });
}

// The first rank that comes to the door of its host collects the others. It is killed before rank 0 has come.
TEST(LongHostInit, of_66_ranks_in_which_a_collector_dies_names_it_on_every_rank_at_once) {
  static constexpr int kCollector = 50, kLast = 0;
  Launch launch = launch_of_many();
  launch.killed = {kCollector};
  run_ranks(launch, [](const Seat& seat) {
    auto& notes = seat.board.notes;
    const fcclUniqueId id = agree_on_id(seat);
    notes[kPids + seat.rank] = getpid();
    if (seat.rank == kCollector) {
      notes[kCollects] = 1;
    } else if (seat.rank / kRanksOfEach == kCollector / kRanksOfEach) {
      wait_for(notes[kCollects], 1);
      std::this_thread::sleep_for(kSettling);
    } else if (seat.rank == kLast) {
      wait_for(notes[kIn], seat.ranks - 1);
      std::this_thread::sleep_for(2 * kSettling);
      notes[kKilledAt] = now_ns();
      send(seat, {kCollector}, SIGKILL);
    }
    ++notes[kIn];
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = 60'000;
    fcclComm_t comm = nullptr;
    const fcclResult_t result = fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config);
    const std::string text = fcclGetLastError(nullptr);
    EXPECT_LT(ms_since(notes[kKilledAt]), kLaw) << text;
    EXPECT_EQ(result, fcclRemoteError) << text;
    EXPECT_NE(text.find(name_of_rank(kCollector)), std::string::npos) << text;
  });
}

// The leaders of hosts 17 to 21 are below that of host 1 in the tree of leaders.
TEST(LongHostInit, of_66_ranks_on_22_hosts_makes_a_communicator_in_which_all_name_a_leader_of_leaders_that_dies) {
  static constexpr int kOfEach = 3, kDies = kOfEach;
  Launch launch = launch_of_many(kOfEach);
  launch.killed = {kDies};
  run_ranks(launch, [](const Seat& seat) {
    in_a_working_communicator(seat, [&](fcclComm_t comm) {
      auto& notes = seat.board.notes;
      if (seat.rank == kDies) {
        wait_for(notes[kIn], seat.ranks - 1);
        std::this_thread::sleep_for(kSettling);
        notes[kKilledAt] = now_ns();
        raise(SIGKILL);
      }
      ++notes[kIn];
      const fcclResult_t result = reduce(comm, 3'000);
      const std::string text = fcclGetLastError(comm);
      EXPECT_LT(ms_since(notes[kKilledAt]), kLaw) << text;
      EXPECT_EQ(result, fcclRemoteError) << text;
      EXPECT_NE(text.find(name_of_rank(kDies)), std::string::npos) << text;
    });
  });
}

}  // namespace
}  // namespace fccl::core::testing
