// Init under attack: a process without a place in the job neither delays nor fails the ranks, and leaves nothing in them.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "bootstrap/messages.h"
#include "channels/channel.h"
#include "creation/create_options.h"
#include "processes/ranks.h"
#include "processes/strangers.h"
#include "sockets/socket.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 4;
constexpr int kRounds = 5;
constexpr int kAttempts = 3;
// The ms that an attack may cost if twice the normal time is less than the scheduler takes, on an idle machine.
constexpr double kNoiseMs = 100;

// Notes of the whiteboard.
enum AttackNote : int { kInPlace, kDone, kPidOfLeader, kBegun, kInTime, kFirstEnd };

enum class Where { tcp, local };

struct Siege {
  Attack attack;
  Where where;
};

void PrintTo(const Siege& siege, std::ostream* out) {
  *out << siege.attack.name << (siege.where == Where::tcp ? "_at_the_root" : "_at_the_leader");
}

std::string name_of_siege(const ::testing::TestParamInfo<Siege>& info) { return ::testing::PrintToString(info.param); }

void wait_for(const std::atomic<int64_t>& note, int64_t value) {
  for (const int64_t begin = now_ns(); note.load() < value; std::this_thread::sleep_for(100us))
    ASSERT_LT(ms_since(begin), 20'000) << "nobody came so far";
}

// The stranger's part of a round: attacks until every rank is done.
void attack(const Siege& siege, const Seat& seat, bool peace) {
  auto& notes = seat.board.notes;
  if (peace) {
    notes[kInPlace].store(1);
    return;
  }
  Door door{*from_c(seat.board.id), {}};
  while (siege.where == Where::local &&
         (door.local_name = local_listener_of(static_cast<int>(notes[kPidOfLeader].load()))).empty())
    std::this_thread::sleep_for(100us);
  siege.attack.run(door, [&] {
    notes[kInPlace].store(1);
    return notes[kDone].load() < kRanks;
  });
}

// A rank's part: joins, and notes when.
void join(const Siege& siege, const Seat& seat) {
  auto& notes = seat.board.notes;
  const bool last = seat.rank == kRanks - 1;
  // The leader's door opens when it joins, so there the last rank alone waits for the strangers.
  if (siege.where == Where::tcp || last) wait_for(notes[kInPlace], 1);
  if (last) notes[kBegun].store(now_ns());
  fcclConfig_t config = config_of_tests();
  fcclComm_t comm = nullptr;
  const fcclResult_t joined = fcclCommInitRankConfig(&comm, kRanks, seat.board.id, seat.rank, &config);
  notes[kFirstEnd + seat.rank].store(now_ns());
  notes[kDone].fetch_add(1);
  ASSERT_EQ(joined, fcclSuccess) << fcclGetLastError(nullptr);
  EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  EXPECT_TRUE(succeeded(fcclCommDestroy(comm)));
}

// One init of all ranks; how long it took, in ms.
double round_of(const Siege& siege, const Seat& seat, bool peace) {
  auto& notes = seat.board.notes;
  if (seat.rank == 0) {
    for (auto& note : notes) note.store(0);
    notes[kPidOfLeader].store(getpid());
  }
  agree_on_id(seat);
  seat.rank == kRanks ? attack(siege, seat, peace) : join(siege, seat);
  seat.meet();
  const auto end = std::max_element(&notes[kFirstEnd], &notes[kFirstEnd] + kRanks);
  return static_cast<double>(end->load() - notes[kBegun].load()) * 1e-6;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// True if an attack leaves the ranks at most twice the normal time, by the medians of rounds in turn; the same on every rank.
bool join_in_time(const Siege& siege, const Seat& seat) {
  std::vector<double> normal, attacked;
  for (int round = 0; round < kRounds; ++round) {
    normal.push_back(round_of(siege, seat, true));
    seat.meet();
    attacked.push_back(round_of(siege, seat, false));
    seat.meet();
  }
  if (seat.rank == 0) {
    std::printf("init of %d ranks: normal %.1f ms, attacked %.1f ms (medians of %d)\n", kRanks, median(normal),
                median(attacked), kRounds);
    const double limit = std::max(2 * median(normal), median(normal) + kNoiseMs * slowness()) * kSlowdown;
    seat.board.notes[kInTime].store(median(attacked) < limit ? 1 : 0);
  }
  seat.meet();
  const bool in_time = seat.board.notes[kInTime].load() == 1;
  seat.meet();
  return in_time;
}

class Besieged : public ::testing::TestWithParam<Siege> {};

TEST_P(Besieged, ranks_join_in_twice_the_normal_time_and_keep_nothing_of_it) {
  run_ranks({RanksAs::processes, kRanks + 1}, [](const Seat& seat) {
    round_of(GetParam(), seat, true);
    std::this_thread::sleep_for(100ms);
    const int descriptors = count_descriptors(), threads = count_threads();
    seat.meet();
    // Other work on the machine may spoil one median, and not every one.
    bool in_time = false;
    for (int attempt = 0; attempt < kAttempts && !in_time; ++attempt) in_time = join_in_time(GetParam(), seat);
    EXPECT_TRUE(in_time) << "in none of " << kAttempts << " attempts";
    // The bootstrap's thread ends a moment after the last rank has joined.
    for (int patience = 0; patience < 300 && (count_descriptors() > descriptors || count_threads() > threads); ++patience)
      std::this_thread::sleep_for(10ms);
    EXPECT_LE(count_descriptors(), descriptors);
    EXPECT_LE(count_threads(), threads);
    seat.meet();
  });
}

// The claim of a fourth process with the key in place of rank 3, and the error that every honest rank gets.
struct Claim {
  const char* name;
  Party party;
  int nranks;
  std::vector<std::string> told;
};

void PrintTo(const Claim& claim, std::ostream* out) { *out << claim.name; }

class Claimed : public ::testing::TestWithParam<Claim> {};

void claim(const Claim& claim, const UniqueId& id, const Seat& seat) {
  Channel channel(std::move(connect_tcp(id.root, Deadline::after(5s)).socket),
                  Conversation(Role::connects, id.key, claim.party));
  ASSERT_TRUE(channel.await_open(Deadline::after(5s)));
  // The others have said who they are.
  wait_for(seat.board.notes[kBegun], kRanks - 1);
  std::this_thread::sleep_for(100ms);
  if (claim.party.version == kOwnVersion) {
    const Member member{claim.party.rank, getpid(), 0, "a host", "name"};
    channel.say(encode(Hello{member, claim.nranks, CreateOptions{}.agreement(), {}, -1, "host"}));
  }
  (void)channel.await_sent(Deadline::after(5s));
  wait_for(seat.board.notes[kDone], kRanks - 1);
}

TEST_P(Claimed, by_a_holder_of_the_key_every_rank_is_told_what_is_wrong_at_once) {
  run_ranks({RanksAs::processes, kRanks}, [](const Seat& seat) {
    agree_on_id(seat);
    auto& notes = seat.board.notes;
    if (seat.rank == kRanks - 1) {
      claim(GetParam(), *from_c(seat.board.id), seat);
    } else {
      fcclConfig_t config = config_of_tests();
      fcclComm_t comm = nullptr;
      const int64_t begin = now_ns();
      notes[kBegun].fetch_add(1);
      EXPECT_EQ(fcclCommInitRankConfig(&comm, kRanks, seat.board.id, seat.rank, &config), fcclInvalidUsage);
      const std::string text = fcclGetLastError(nullptr);
      EXPECT_TRUE(in_time(begin, 1600));
      notes[kDone].fetch_add(1);
      for (const std::string& piece : GetParam().told)
        EXPECT_NE(text.find(piece), std::string::npos) << piece << " not in " << text;
    }
    // The process of rank 0 serves the id.
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(
    As, Claimed,
    ::testing::Values(Claim{"a_rank_that_is_there", {1}, kRanks, {"rank 1 joined twice", "on a host"}},
                      Claim{"a_rank_out_of_range", {9}, kRanks, {"rank 9 (pid", "out of range", "ranks 0 to 3"}},
                      Claim{"a_negative_rank", {-1}, kRanks, {"rank -1 (pid", "out of range"}},
                      Claim{"another_number_of_ranks", {3}, 5, {"rank 3 (pid", "of 5 ranks", "one of 4"}},
                      Claim{"no_possible_number_of_ranks", {3}, 1 << 30, {"1073741824 ranks"}},
                      Claim{"another_protocol", {3, {77, FCCL_VERSION_CODE}}, kRanks, {"rank 3 speaks protocol 77"}},
                      Claim{"another_library", {3, {kOwnVersion.protocol, 90909}}, kRanks, {"library 9.9.9"}}),
    [](const auto& info) { return info.param.name; });

TEST(Init, with_a_missing_rank_names_it_on_every_rank) {
  run_ranks({RanksAs::processes, kRanks}, [](const Seat& seat) {
    agree_on_id(seat);
    if (seat.rank != 2) {
      fcclConfig_t config = config_of_tests();
      config.initTimeoutMs = 500;
      fcclComm_t comm = nullptr;
      EXPECT_EQ(fcclCommInitRankConfig(&comm, kRanks, seat.board.id, seat.rank, &config), fcclTimeout);
      const std::string text = fcclGetLastError(nullptr);
      EXPECT_NE(text.find("missing: rank 2"), std::string::npos) << text;
    }
    seat.meet();
  });
}

std::vector<Siege> every_siege() {
  std::vector<Siege> sieges;
  for (const Where where : {Where::tcp, Where::local})
    for (const Attack& attack : every_attack()) sieges.push_back({attack, where});
  return sieges;
}

INSTANTIATE_TEST_SUITE_P(By, Besieged, ::testing::ValuesIn(every_siege()), name_of_siege);

}  // namespace
}  // namespace fccl::core::testing
