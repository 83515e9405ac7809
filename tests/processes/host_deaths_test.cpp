// Deaths of ranks and of whole hosts: every survivor of every host hears of them within a second, by name.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "processes/hosts.h"

namespace fccl::testing {
namespace {

using namespace std::chrono_literals;

// Who dies, on which hosts.
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

class HostDeath : public ::testing::TestWithParam<Victims> {};

void expect_death_is_known(const Seat& seat, fcclComm_t comm, fcclResult_t result, const Victims& victims) {
  // One that heard of the others' death just before its own.
  if (victims.has(seat.rank)) std::this_thread::sleep_for(30s);
  ASSERT_NE(seat.board.notes[0], 0) << "an error came before the death: " << fcclGetLastError(comm);
  const double ms = ms_since(seat.board.notes[0]);
  EXPECT_LT(ms, kSecond) << fcclGetLastError(comm);
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
    fcclResult_t state = fcclSuccess;
    while (state == fcclSuccess && (seat.board.notes[0] == 0 || ms_since(seat.board.notes[0]) < 2 * kSecond)) {
      EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
      std::this_thread::sleep_for(1ms);
    }
    expect_death_is_known(seat, comm, state, GetParam());
  });
}

// Before the hosts have met, a host hears of a death on another one by nothing but its deadline.
TEST_P(HostDeath, in_init_ends_it_for_those_who_wait_there_at_the_latest_at_the_deadline) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    constexpr int kDeadline = 2000 * kSlowdown;
    const fcclUniqueId id = agree_on_id(seat);
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = kDeadline;
    fcclComm_t comm = nullptr;
    const bool dies = GetParam().has(seat.rank);
    // Somewhere on the way, another place each time.
    if (dies)
      std::thread([&seat] {
        std::this_thread::sleep_for(std::chrono::microseconds(now_ns() / 1000 % 40'000));
        die(seat);
      }).detach();
    const fcclResult_t result = fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config);
    if (dies) std::this_thread::sleep_for(30s);
    const Comm made(comm);
    if (result == fcclSuccess) return expect_death_is_known(seat, made, fcclBarrier(made, nullptr), GetParam());
    EXPECT_TRUE(result == fcclRemoteError || result == fcclTimeout) << fcclGetLastError(nullptr);
    EXPECT_EQ(comm, nullptr);
    EXPECT_LT(ms_since(seat.board.notes[0]), kDeadline + kSecond);
    const std::string text = fcclGetLastError(nullptr);
    EXPECT_NE(text.find("rank "), std::string::npos) << text;
  });
}

std::string name_of_victims(const ::testing::TestParamInfo<Victims>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Of, HostDeath,
                         ::testing::Values(Victims{"rank_0", kTwoAndTwo, {0}}, Victims{"a_host", kTwoAndTwo, {2, 3}}),
                         name_of_victims);

INSTANTIATE_TEST_SUITE_P(Long, HostDeath,
                         ::testing::Values(Victims{"who_speaks_for_a_host", kTwoAndTwo, {2}},
                                           Victims{"who_speaks_for_none", kTwoAndTwo, {3}},
                                           Victims{"the_host_of_rank_0", kTwoAndTwo, {0, 1}},
                                           Victims{"who_is_left_over", kThreeAndOne, {2}},
                                           Victims{"rank_0_of_three_hosts", kTwoAndOneAndOne, {0}}),
                         name_of_victims);

}  // namespace
}  // namespace fccl::testing
