// Teams of processes: what they hear of each other, and that no death, stop or silence outlasts the limit.
#include "team.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace fccl::gpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr double kLong = 30;    // a limit that only a defect reaches
constexpr double kShort = 0.3;  // a limit that is meant to pass
constexpr double kMoment = 10;  // within which a team ends after that, on a machine that is busy

// How a team ended, what it said, and how long it took.
struct Told {
  TeamEnd end;
  std::vector<std::string> rows;
  double seconds = 0;
};

Told tell(int ranks, double limit, const std::function<void(Rank&)>& part) {
  Told told;
  const auto begin = Clock::now();
  told.end = run_team(ranks, limit, part, [&](const Row& row) { told.rows.push_back(row.what); });
  told.seconds = seconds_since(begin);
  return told;
}

TEST(Team, HearsTheRowsOfAllRanks) {
  const Told told = tell(4, kLong, [](Rank& rank) { rank.report(measured("row " + std::to_string(rank.index()), 1, "")); });
  EXPECT_EQ(told.end.outcome, Outcome::well) << told.end.why;
  EXPECT_THAT(told.rows, UnorderedElementsAre("row 0", "row 1", "row 2", "row 3"));
}

TEST(Team, KeepsWhatItsRanksPrintOffTheOutputOfRows) {
  testing::internal::CaptureStdout();
  const Told told = tell(1, kLong, [](Rank&) { std::puts("a library's warning"); });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(told.end.outcome, Outcome::well) << told.end.why;
}

TEST(Team, CarriesBytesBetweenAllRanks) {
  const Told told = tell(kMostRanks, kLong, [](Rank& rank) {
    for (int peer = 0; peer < rank.count(); ++peer) {
      if (peer != rank.index()) rank.send(peer, std::to_string(rank.index() * 10 + peer));
    }
    for (int peer = 0; peer < rank.count(); ++peer) {
      if (peer == rank.index()) continue;
      const std::string got = rank.receive(peer).bytes;
      if (got != std::to_string(peer * 10 + rank.index())) throw std::runtime_error("got " + got);
    }
  });
  EXPECT_EQ(told.end.outcome, Outcome::well) << told.end.why;
}

TEST(Team, CarriesDescriptorsBetweenRanks) {
  const Told told = tell(2, kLong, [](Rank& rank) {
    std::array<int, 2> ends{};
    if (rank.index() == 0) {
      if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
      rank.send(1, "a pipe", ends[0]);
      if (write(ends[1], "x", 1) != 1) throw std::runtime_error("nothing written");
      rank.meet("the other has read");
      return;
    }
    const Packet packet = rank.receive(0);
    char read_byte = 0;
    if (read(packet.descriptor, &read_byte, 1) != 1 || read_byte != 'x') throw std::runtime_error("nothing read");
    rank.meet("the other has read");
  });
  EXPECT_EQ(told.end.outcome, Outcome::well) << told.end.why;
}

TEST(Team, SharesMemoryThatIsZeroAtFirst) {
  const Told told = tell(3, kLong, [](Rank& rank) {
    auto& sum = *reinterpret_cast<std::atomic<int>*>(rank.shared().data());
    sum.fetch_add(rank.index() + 1);
    rank.meet("all have added");
    if (sum.load() != 6) throw std::runtime_error("the sum is " + std::to_string(sum.load()));
  });
  EXPECT_EQ(told.end.outcome, Outcome::well) << told.end.why;
}

TEST(Team, MeetsManyTimes) {
  const Told told = tell(3, kLong, [](Rank& rank) {
    auto& turns = *reinterpret_cast<std::atomic<int>*>(rank.shared().data());
    for (int turn = 0; turn < 200; ++turn) {
      turns.fetch_add(1);
      rank.meet("all have counted");
      if (turns.load() < 3 * (turn + 1)) throw std::runtime_error("a rank was left behind");
      rank.meet("all have looked");
    }
  });
  EXPECT_EQ(told.end.outcome, Outcome::well) << told.end.why;
}

TEST(Team, TellsARankOfAnotherOnesEnd) {
  const Told told = tell(2, kLong, [](Rank& rank) {
    auto& over = *reinterpret_cast<std::atomic<int>*>(rank.shared().data());
    if (rank.index() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      over = 1;
      return;
    }
    rank.wait_for_end_of(1);
    if (over != 1) throw std::runtime_error("it had not ended");
  });
  EXPECT_EQ(told.end.outcome, Outcome::well) << told.end.why;
}

TEST(Team, EndsAtOnceWhenTheAwaitedPartnerIsKilled) {
  const Told told = tell(2, kLong, [](Rank& rank) {
    if (rank.index() == 1) raise(SIGKILL);
    rank.receive(1);
  });
  EXPECT_EQ(told.end.outcome, Outcome::failed);
  EXPECT_THAT(told.end.why, AllOf(HasSubstr("rank 1 (pid "), HasSubstr("was ended by signal Killed")));
  EXPECT_LT(told.seconds, kMoment);
}

TEST(Team, NamesTheDeadAlsoWhenWhoWaitedForThemIsHeardFirst) {
  for (int time = 0; time < 20; ++time) {
    const Told told = tell(2, kLong, [](Rank& rank) {
      if (rank.index() == 1) raise(SIGKILL);
      rank.wait_for_end_of(1);
      throw std::runtime_error("rank 0 waited");
    });
    EXPECT_THAT(told.end.why, AllOf(HasSubstr("rank 1 (pid "), HasSubstr("was ended by signal Killed")));
  }
}

TEST(Team, EndsAtOnceWhenAPartnerIsKilledForWhomNobodyListens) {
  const Told told = tell(3, kLong, [](Rank& rank) {
    if (rank.index() == 2) raise(SIGKILL);
    rank.meet("all have come");
  });
  EXPECT_EQ(told.end.outcome, Outcome::failed);
  EXPECT_THAT(told.end.why, AllOf(HasSubstr("rank 2 (pid "), HasSubstr("was ended by signal Killed")));
  EXPECT_LT(told.seconds, kMoment);
}

TEST(Team, PassesItsLimitWhenThePartnerIsStoppedAndSaysWhoWaited) {
  const Told told = tell(2, kShort, [](Rank& rank) {
    if (rank.index() == 1) raise(SIGSTOP);
    rank.receive(1);
  });
  EXPECT_EQ(told.end.outcome, Outcome::failed);
  EXPECT_THAT(told.end.why, HasSubstr("rank 0 waited for a message of rank 1 until the limit of the case had passed"));
  EXPECT_LT(told.seconds, kShort + kMoment);
}

TEST(Team, SaysHowManyAreMissingAtAMeeting) {
  const Told told = tell(3, kShort, [](Rank& rank) {
    if (rank.index() == 1) raise(SIGSTOP);
    rank.meet("all have come");
  });
  EXPECT_EQ(told.end.outcome, Outcome::failed);
  EXPECT_THAT(told.end.why, AllOf(HasSubstr("waited for 1 others"), HasSubstr("all have come")));
}

TEST(Team, KillsARankThatNeitherReturnsNorWaits) {
  const Told told = tell(1, kShort, [](Rank&) {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  });
  EXPECT_EQ(told.end.outcome, Outcome::failed);
  EXPECT_THAT(told.end.why, AllOf(HasSubstr("passed its limit of 0.3"), HasSubstr("still running then: rank 0")));
  EXPECT_LT(told.seconds, kShort + kMoment);
}

TEST(Team, SaysWhatARankThrew) {
  const Told told = tell(2, kLong, [](Rank& rank) {
    if (rank.index() == 1) throw std::runtime_error("the third page is torn");
    rank.receive(1);
  });
  EXPECT_EQ(told.end.outcome, Outcome::failed);
  EXPECT_THAT(told.end.why, AllOf(HasSubstr("rank 1"), HasSubstr("the third page is torn")));
}

TEST(Team, EndsAsUnsupportedWhenARankMissesAFeatureWhoeverIsHeardFirst) {
  for (const int missing : {0, 1}) {
    const Told told = tell(2, kLong, [missing](Rank& rank) {
      if (rank.index() == missing) throw Unsupported("a flag of glass");
      rank.receive(missing);
    });
    EXPECT_EQ(told.end.outcome, Outcome::unsupported);
    EXPECT_EQ(told.end.why, "not supported here: a flag of glass");
  }
}

TEST(Team, NamesTheStatusOfARankThatEndsWithoutAWord) {
  const Told told = tell(1, kLong, [](Rank&) { _exit(3); });
  EXPECT_EQ(told.end.outcome, Outcome::failed);
  EXPECT_THAT(told.end.why, HasSubstr("ended with status 3"));
}

TEST(Team, LeavesNoProcessWhenItsStarterIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), 0), 0);
  const pid_t starter = fork();
  if (starter == 0) {
    close(ends[0]);
    run_team(2, kLong, [](Rank&) { std::this_thread::sleep_for(std::chrono::seconds(60)); }, [](const Row&) {});
    _exit(0);
  }
  close(ends[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(starter, SIGKILL);
  const Deadline deadline = Deadline::in(kMoment);
  // The writing end is open in the ranks as long as they live.
  char nothing = 0;
  EXPECT_EQ(read(ends[0], &nothing, 1), 0);
  EXPECT_FALSE(deadline.has_passed());
}

}  // namespace
}  // namespace fccl::gpu
