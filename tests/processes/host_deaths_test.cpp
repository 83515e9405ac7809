// Deaths of ranks and of whole hosts: every survivor of every host hears of them within a second, by name.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <regex>
#include <thread>

#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// The ranks that die, and their hosts.
struct Victims {
  const char* name;
  OnHosts hosts;
  std::vector<int> ranks;

  bool has(int rank) const { return std::ranges::count(ranks, rank) > 0; }
  Launch launch() const {
    Launch launch = hosts.launch();
    launch.killed = ranks;
    return launch;
  }
};

void PrintTo(const Victims& victims, std::ostream* out) { *out << victims.name; }

[[noreturn]] void die(const Seat& seat) {
  int64_t nobody = 0;
  seat.board.notes[0].compare_exchange_strong(nobody, now_ns());
  kill(getpid(), SIGKILL);
  std::abort();
}

class HostDeath : public ::testing::TestWithParam<Victims> {
  const Setting costs_{"FCCL_COSTS", kDearMessages};
};

void expect_death_is_known(const Seat& seat, fcclComm_t comm, fcclResult_t result, const Victims& victims) {
  // One that heard of the others' death just before its own.
  if (victims.has(seat.rank)) std::this_thread::sleep_for(30s);
  ASSERT_NE(seat.board.notes[0], 0) << "an error came before the death: " << fcclGetLastError(comm);
  EXPECT_TRUE(in_time(seat.board.notes[0], 1000)) << fcclGetLastError(comm);
  expect_failure(comm, result, fcclRemoteError, victims.ranks);
}

void die_soon(const Seat& seat) {
  std::thread([&seat] {
    std::this_thread::sleep_for(40ms);
    die(seat);
  }).detach();
}

TEST_P(HostDeath, inside_small_calls_reaches_every_survivor) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (GetParam().has(seat.rank)) die_soon(seat);
    expect_death_is_known(seat, comm, reduce_until_failure(comm, 4), GetParam());
  });
}

TEST_P(HostDeath, inside_large_calls_reaches_every_survivor) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (GetParam().has(seat.rank)) die_soon(seat);
    expect_death_is_known(seat, comm, reduce_until_failure(comm, 3'000'000), GetParam());
  });
}

TEST_P(HostDeath, before_a_call_reaches_those_who_wait_in_it) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (GetParam().has(seat.rank)) {
      std::this_thread::sleep_for(50ms);
      die(seat);
    }
    expect_death_is_known(seat, comm, fcclBarrier(comm, nullptr), GetParam());
  });
}

TEST_P(HostDeath, ends_what_is_on_streams) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (GetParam().has(seat.rank)) {
      std::this_thread::sleep_for(50ms);
      die(seat);
    }
    fcclStream_t stream;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    EXPECT_TRUE(succeeded(reduce(comm, 100'000, stream)));
    expect_death_is_known(seat, comm, fcclStreamSynchronize(stream), GetParam());
    EXPECT_EQ(fcclStreamDestroy(stream), fcclRemoteError);
  });
}

TEST_P(HostDeath, while_all_are_idle_shows_to_who_asks) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (GetParam().has(seat.rank)) {
      std::this_thread::sleep_for(20ms);
      die(seat);
    }
    expect_death_is_known(seat, comm, await_failure(comm, seat.board.notes[0], 2 * kSecond), GetParam());
  });
}

constexpr int kInitSeconds = 10;

// True if an error of init says that victims are missing, and nobody else.
bool misses(const Victims& victims, const std::string& text) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("missing: ranks? ([0-9]+)(-([0-9]+))?(,?)")) || found[4].length() > 0)
    return false;
  const int first = std::stoi(found[1]);
  return victims.has(first) && victims.has(found[3].matched ? std::stoi(found[3]) : first);
}

TEST_P(HostDeath, in_init_ends_it_for_those_who_wait_there) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = static_cast<int>(kInitSeconds * kSecond);
    fcclComm_t comm = nullptr;
    const bool dies = GetParam().has(seat.rank);
    // Somewhere on the way, another place each time.
    if (dies)
      std::thread([&seat] {
        std::this_thread::sleep_for(std::chrono::microseconds(now_ns() / 1000 % 40'000));
        die(seat);
      }).detach();
    const int64_t begin = now_ns();
    const fcclResult_t result = fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config);
    if (dies) std::this_thread::sleep_for(30s);
    const Comm made(comm);
    if (result == fcclSuccess) return expect_death_is_known(seat, made, fcclBarrier(made, nullptr), GetParam());
    EXPECT_EQ(comm, nullptr);
    const std::string text = fcclGetLastError(nullptr);
    // No rank knows a rank that died before it had joined.
    const bool was_never_there = result == fcclTimeout && misses(GetParam(), text);
    EXPECT_TRUE(was_never_there || result == fcclRemoteError) << text;
    if (was_never_there) {
      EXPECT_LT(ms_since(begin), (kInitSeconds + 1) * kSecond) << text;
    } else {
      EXPECT_TRUE(in_time(seat.board.notes[0], 3000)) << text;
    }
    EXPECT_NE(text.find("rank "), std::string::npos) << text;
  });
}

TEST_P(HostDeath, with_forks_that_live_on_reaches_every_survivor) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    if (GetParam().has(seat.rank)) {
      leave_a_child_behind(5s);
      std::this_thread::sleep_for(50ms);
      die(seat);
    }
    expect_death_is_known(seat, comm, fcclBarrier(comm, nullptr), GetParam());
  });
}

std::string name_of_victims(const ::testing::TestParamInfo<Victims>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Of, HostDeath,
                         ::testing::Values(Victims{"rank_0", kTwoAndTwo, {0}}, Victims{"a_host", kTwoAndTwo, {2, 3}},
                                           Victims{"one_of_five_hosts", kFiveHosts, {3}}),
                         name_of_victims);

INSTANTIATE_TEST_SUITE_P(Long, HostDeath,
                         ::testing::Values(Victims{"who_speaks_for_a_host", kTwoAndTwo, {2}},
                                           Victims{"who_is_left_over", kThreeAndOne, {2}},
                                           Victims{"rank_0_of_three_hosts", kTwoAndOneAndOne, {0}}),
                         name_of_victims);

INSTANTIATE_TEST_SUITE_P(Campaign, HostDeath,
                         ::testing::Values(Victims{"who_speaks_for_none", kTwoAndTwo, {3}},
                                           Victims{"the_host_of_rank_0", kTwoAndTwo, {0, 1}}),
                         name_of_victims);

// A rank destroys its communicator, though its process lives on; then another one dies, for which nobody else would speak.
struct Departures {
  const char* name;
  OnHosts hosts;
  std::vector<int> leavers;
  int victim;

  bool leaves(int rank) const { return std::ranges::count(leavers, rank) > 0; }
};

void PrintTo(const Departures& departures, std::ostream* out) { *out << departures.name; }

class HostDeathAfterLeaving : public ::testing::TestWithParam<Departures> {};

TEST_P(HostDeathAfterLeaving, of_who_speaks_for_a_host_reaches_the_others_all_the_same) {
  Launch launch = GetParam().hosts.launch();
  launch.killed = {GetParam().victim};
  run_ranks(launch, [](const Seat& seat) {
    const Departures& departures = GetParam();
    auto& notes = seat.board.notes;
    Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    if (departures.leaves(seat.rank)) {
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
    }
    seat.meet();
    if (seat.rank == departures.victim) {
      std::this_thread::sleep_for(50ms);
      die(seat);
    }
    if (departures.leaves(seat.rank)) {
      while (notes[1] < seat.ranks - 1 - static_cast<int>(departures.leavers.size())) std::this_thread::sleep_for(1ms);
      return;
    }
    const fcclResult_t result = await_failure(comm, notes[0], 6 * kSecond);
    EXPECT_TRUE(in_time(notes[0], 3000));
    expect_failure(comm, result, fcclRemoteError, {departures.victim});
    ++notes[1];
  });
}

std::string name_of_departures(const ::testing::TestParamInfo<Departures>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Of, HostDeathAfterLeaving,
                         ::testing::Values(Departures{"the_leader_of_the_victim", kTwoAndTwo, {2}, 3},
                                           Departures{"the_hub_and_the_leader_of_the_victim", kTwoAndTwo, {0, 2}, 3},
                                           Departures{"the_hub_that_leads_the_victim", kTwoAndTwo, {0}, 1},
                                           Departures{"the_host_of_the_hub", kOneAndTwoAndOne, {0}, 2}),
                         name_of_departures);

TEST(HostAfterLeaving, of_its_leader_hears_of_an_abort_on_another_one) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) {
    Comm comm(seat);
    if (seat.rank == 2) {
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
    }
    seat.meet();
    if (seat.rank == 1) {
      seat.board.notes[0] = now_ns();
      EXPECT_TRUE(succeeded(fcclCommRevoke(comm, 0)));
    }
    if (seat.rank == 3) {
      EXPECT_EQ(await_failure(comm, seat.board.notes[0], 6 * kSecond), fcclAborted);
      EXPECT_TRUE(in_time(seat.board.notes[0], 3000));
    }
    seat.meet();
  });
}

// Its process ends, too: nobody tells of the other rank of its host any more, and nobody takes that for its death.
TEST(HostAfterLeaving, of_its_leader_and_the_end_of_its_process_nobody_is_taken_for_dead) {
  run_ranks(kTwoAndTwo.launch(), [](const Seat& seat) {
    Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    seat.meet();
    if (seat.rank == 2) {
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      return;
    }
    std::this_thread::sleep_for(1s);
    fcclResult_t state = fcclInternalError;
    EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
    EXPECT_EQ(state, fcclSuccess) << fcclGetLastError(comm);
  });
}

}  // namespace
}  // namespace fccl::core::testing
