// Deaths of ranks for which nobody waits: every rank that waits for another one hears of them within a second, by name.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <regex>
#include <string>
#include <thread>

#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void die(const Seat& seat) {
  seat.board.notes[0] = now_ns();
  kill(getpid(), SIGKILL);
  std::abort();
}

// The error names the dead rank before any other.
void expect_to_blame(int victim, fcclComm_t comm, fcclResult_t result) {
  EXPECT_EQ(result, fcclRemoteError);
  const std::string text = fcclGetLastError(comm);
  std::smatch named;
  EXPECT_TRUE(std::regex_search(text, named, std::regex("rank ([0-9]+) \\(pid")) && std::stoi(named[1]) == victim) << text;
}

// The call of a living rank while another one has died: it waits for a third, which comes when it has been released.
using Waits = fcclResult_t (*)(fcclComm_t comm, int peer);

fcclResult_t receive(fcclComm_t comm, int peer) {
  int value = 0;
  return fcclRecv(&value, 1, fcclInt32, peer, comm, nullptr);
}

fcclResult_t reduce_on_stream(fcclComm_t comm, int) {
  fcclStream_t stream = nullptr;
  EXPECT_TRUE(succeeded(fcclStreamCreate(&stream)));
  EXPECT_TRUE(succeeded(reduce(comm, 1000, stream)));
  const fcclResult_t result = fcclStreamSynchronize(stream);
  EXPECT_EQ(fcclStreamDestroy(stream), fcclRemoteError);
  return result;
}

struct Scene {
  const char* name;
  OnHosts hosts;
  int victim, late;
  Waits wait;
};

void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

class UnawaitedDeath : public ::testing::TestWithParam<Scene> {};

TEST_P(UnawaitedDeath, reaches_those_who_wait_for_a_rank_that_lives) {
  Launch launch = GetParam().hosts.launch();
  launch.killed = {GetParam().victim};
  run_ranks(launch, [](const Seat& seat) {
    const Scene& scene = GetParam();
    auto& notes = seat.board.notes;
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(reduce(comm, 1)));
    if (seat.rank == scene.victim) {
      std::this_thread::sleep_for(100ms);
      die(seat);
    }
    if (seat.rank != scene.late) {
      const fcclResult_t result = scene.wait(comm, scene.late);
      EXPECT_TRUE(in_time(notes[0], 1000)) << fcclGetLastError(comm);
      expect_to_blame(scene.victim, comm, result);
      ++notes[1];
    }
    // Nobody goes before all have heard, so no end of a process tells it.
    while (notes[1] < seat.ranks - 2) std::this_thread::sleep_for(1ms);
    if (seat.rank == scene.late) expect_to_blame(scene.victim, comm, fcclBarrier(comm, nullptr));
  });
}

INSTANTIATE_TEST_SUITE_P(Of, UnawaitedDeath,
                         ::testing::Values(Scene{"one_of_a_host_in_a_receive", {"", {0, 0, 0}}, 2, 0, receive},
                                           Scene{"one_of_a_host_on_a_stream", {"", {0, 0, 0}}, 0, 2, reduce_on_stream},
                                           Scene{"a_first_rank_in_a_receive", kInTurn, 1, 2, receive},
                                           Scene{"a_first_rank_on_a_stream", kInTurn, 1, 2, reduce_on_stream},
                                           Scene{"the_hub_in_a_receive", kInTurn, 0, 3, receive},
                                           Scene{"one_of_three_hosts_in_a_receive", kOneAndTwoAndOne, 2, 3, receive}),
                         [](const auto& each) { return std::string(each.param.name); });

// A rank dies at a random moment of random calls of two communicators of the same ranks, the second in another order.
struct Kill {
  explicit Kill(uint64_t seed) : generator(seed) {
    const int spread = draw(1, 3);
    for (int rank = 0; rank < 5; ++rank) host_of.push_back(rank < spread ? rank : draw(0, spread - 1));
    std::sort(host_of.begin(), host_of.end());
    victim = draw(0, 4);
    after_ms = draw(0, 80);
    count = static_cast<size_t>(draw(1, 1 << draw(2, 18)));
  }
  int draw(int least, int most) { return std::uniform_int_distribution(least, most)(generator); }

  std::mt19937_64 generator;
  std::vector<int> host_of;
  int victim, after_ms;
  size_t count;
};

void expect_failure_within_a_second(const Seat& seat, fcclComm_t comm, fcclResult_t result, int victim, int64_t since) {
  ASSERT_NE(seat.board.notes[0], 0) << "an error came before the death: " << fcclGetLastError(comm);
  EXPECT_TRUE(in_time(since, 1000)) << fcclGetLastError(comm);
  expect_to_blame(victim, comm, result);
}

void live_through(const Kill& kill, const Seat& seat) {
  const Comm first(seat);
  fcclComm_t split = nullptr;
  ASSERT_TRUE(succeeded(fcclCommSplit(first, 0, seat.rank, &split, nullptr)));
  const Comm second(split);
  // The victim outlives the split of every rank.
  ++seat.board.notes[1];
  if (seat.rank == kill.victim)
    std::thread([&] {
      while (seat.board.notes[1] < seat.ranks) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(kill.after_ms));
      die(seat);
    }).detach();
  Kill draws = kill;
  const auto random_call = [&](int which) {
    if (draws.draw(0, 7) == seat.rank) std::this_thread::sleep_for(5ms);
    // Always the same call, since a rank that has heard of the death goes on to the other communicator before its peers.
    return reduce(which == 0 ? first : second, kill.count);
  };
  fcclResult_t result = fcclSuccess;
  int which = 0;
  while (result == fcclSuccess) result = random_call(which = draws.draw(0, 1));
  // The victim may hear that its peers take it for dead while it dies.
  if (seat.rank == kill.victim) std::this_thread::sleep_for(30s);
  expect_failure_within_a_second(seat, which == 0 ? first : second, result, kill.victim, seat.board.notes[0]);
  // The other communicator fails in its next call, no matter which ranks have come to it.
  fcclComm_t other = which == 0 ? second : first;
  const int64_t entered = now_ns();
  while ((result = reduce(other, kill.count)) == fcclSuccess) {
  }
  expect_failure_within_a_second(seat, other, result, kill.victim, entered);
}

void run_kill(uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Kill kill(seed);
  Launch launch{.as = RanksAs::processes, .ranks = 5, .killed = {kill.victim}, .host_of = kill.host_of};
  run_ranks(launch, [&](const Seat& seat) { live_through(kill, seat); });
}

class KillOfARandomRank : public ::testing::TestWithParam<int> {};

TEST_P(KillOfARandomRank, is_named_to_every_survivor_in_every_communicator) { run_kill(static_cast<uint64_t>(GetParam())); }

INSTANTIATE_TEST_SUITE_P(With, KillOfARandomRank, ::testing::Range(1, 13),
                         [](const auto& seed) { return "seed_" + std::to_string(seed.param); });

TEST(KillCampaign, names_the_dead_rank_to_every_survivor_in_every_communicator) {
  const char* asked = std::getenv("FCCL_TEST_KILLS");
  const int kills = asked == nullptr ? 50 : std::atoi(asked);
  for (int seed = 100; seed < 100 + kills && !::testing::Test::HasFailure(); ++seed) run_kill(static_cast<uint64_t>(seed));
}

}  // namespace
}  // namespace fccl::core::testing
