// Splits that cannot come to their end: a member dies, is stopped, or its parent is revoked. Ranks are processes here.
#include <unistd.h>

#include <thread>

#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kVictimOfSplit = 1;
constexpr int kPids = 64;  // notes from here on: the ranks' processes

// Splits again and again by `color`, in halves by -1, until a split fails; the text is the cause.
fcclResult_t split_until_failure(const Seat& seat, fcclComm_t comm, int color, std::string& text) {
  while (true) {
    fcclComm_t part = nullptr;
    const fcclResult_t result = fcclCommSplit(comm, color < 0 ? seat.rank % 2 : color, 0, &part, nullptr);
    text = fcclGetLastError(nullptr);
    fcclCommDestroy(part);
    if (result != fcclSuccess) return result;
  }
}

class SplitFailure : public ::testing::TestWithParam<int> {};

TEST_P(SplitFailure, by_death_reaches_every_survivor) {
  run_ranks({.as = RanksAs::processes, .ranks = 4, .killed = {kVictimOfSplit}}, [](const Seat& seat) {
    const Comm comm(seat);
    std::thread killer;
    if (seat.rank == kVictimOfSplit)
      killer = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(20'000 + 700 * GetParam()));
        seat.board.notes[0] = now_ns();
        kill(getpid(), SIGKILL);
      });
    std::string text;
    EXPECT_EQ(split_until_failure(seat, comm, -1, text), fcclRemoteError) << text;
    if (killer.joinable()) killer.join();
    EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
    // The parent knows the dead by its own count of ranks.
    fcclResult_t state = fcclSuccess;
    EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
    EXPECT_EQ(state, fcclRemoteError);
    EXPECT_NE(std::string(fcclGetLastError(comm)).find("rank 1 (pid"), std::string::npos) << fcclGetLastError(comm);
  });
}

// Wherever in the split the others wait for the stopped rank, its last steps included.
TEST_P(SplitFailure, by_revoking_the_parent_ends_a_split_that_waits_for_a_stopped_rank) {
  run_ranks({RanksAs::processes, 3}, [](const Seat& seat) {
    const Comm comm(seat);
    seat.board.notes[kPids + seat.rank] = getpid();
    seat.meet();
    // The thread that served init may end a moment after the last rank has joined.
    while (count_threads() > 1) std::this_thread::sleep_for(1ms);
    const int descriptors = count_descriptors();
    std::thread revoker;
    if (seat.rank == 0)
      revoker = std::thread([&] {
        const auto victim = static_cast<pid_t>(seat.board.notes[kPids + kVictimOfSplit]);
        std::this_thread::sleep_for(std::chrono::microseconds(10'000 + 700 * GetParam()));
        kill(victim, SIGSTOP);
        std::this_thread::sleep_for(50ms);
        seat.board.notes[0] = now_ns();
        EXPECT_TRUE(succeeded(fcclCommRevoke(comm, 0)));
        while (seat.board.notes[1] == 0) std::this_thread::sleep_for(1ms);
        kill(victim, SIGCONT);
      });
    std::string text;
    EXPECT_EQ(split_until_failure(seat, comm, 0, text), fcclAborted) << text;
    EXPECT_NE(text.find("rank 0 aborted"), std::string::npos) << text;
    if (seat.rank != kVictimOfSplit) {
      EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
    }
    // Rank 0 lets the victim go on when rank 2 is out.
    if (seat.rank == 2) seat.board.notes[1] = 1;
    if (revoker.joinable()) revoker.join();
    // The bootstrap that nobody meets at any more goes with the split.
    for (int patience = 0; patience < 2000 && (count_threads() > 1 || count_descriptors() > descriptors); ++patience)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(count_threads(), 1);
    EXPECT_LE(count_descriptors(), descriptors);
  });
}

INSTANTIATE_TEST_SUITE_P(After, SplitFailure, ::testing::Range(0, 8));

}  // namespace
}  // namespace fccl::core::testing
