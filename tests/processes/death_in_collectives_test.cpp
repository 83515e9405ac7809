// Death in every collective on every path, by every way to die: all survivors name the dead rank within a second, with one
// text.
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "processes/ranks.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kVictimInCall = 1;

enum class Ending { kill, segv, exit, exit_after_destroy };
constexpr const char* kEndings[] = {"kill", "segv", "exit", "exit_after_destroy"};

struct Case {
  Ending ending;
  fcclColl_t collective;
  bool large;             // by the ring
  bool in_place = false;  // by attach if it is large, too
  Buffers buffers = Buffers::own;

  Recipe recipe() const {
    const size_t count = collective == fcclCollBarrier ? 0 : large ? 400'000 : 7;
    return {.collective = collective, .dtype = fcclInt32, .count = count, .root = 2, .in_place = in_place, .buffers = buffers};
  }
  int signal() const { return ending == Ending::kill ? SIGKILL : ending == Ending::segv ? SIGSEGV : 0; }
};

[[noreturn]] void end(const Seat& seat, const Case& way) {
  seat.board.notes[0] = now_ns();
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // A sanitizer's handler would make an exit of it.
  std::signal(SIGSEGV, SIG_DFL);
  if (way.signal() != 0) std::raise(way.signal());
  _exit(0);
}

// All ranks repeat the call until the victim is gone, in a call or, if it destroys first, between two.
fcclResult_t call_until_death(const Seat& seat, Comm& comm, const Case& way) {
  std::thread killer;
  if (seat.rank == kVictimInCall && way.ending != Ending::exit_after_destroy)
    killer = std::thread([&] {
      std::this_thread::sleep_for(20ms);
      end(seat, way);
    });
  for (int i = 0;; ++i) {
    if (seat.rank == kVictimInCall && way.ending == Ending::exit_after_destroy && i == 3) {
      seat.board.notes[0] = now_ns();
      fcclCommDestroy(comm.release());
      end(seat, way);
    }
    Recipe recipe = way.recipe();
    recipe.iteration = i;
    Trial trial(recipe, seat.rank, seat.ranks);
    if (const fcclResult_t result = trial.issue(comm); result != fcclSuccess) return result;
    EXPECT_EQ(trial.fault(), "");
  }
}

class DeathInside : public ::testing::TestWithParam<Case> {
  // Also with more ranks than processors.
  const Setting attach_{"FCCL_CROSS_MEMORY_ATTACH", "on"};
};

TEST_P(DeathInside, reaches_every_survivor_with_one_text) {
  const Case& way = GetParam();
  run_ranks({.as = RanksAs::processes, .ranks = 3, .killed = {kVictimInCall}, .by_signal = way.signal()},
            [&](const Seat& seat) {
              Comm comm(seat);
              EXPECT_EQ(call_until_death(seat, comm, way), fcclRemoteError);
              EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
              const std::string text = fcclGetLastError(comm);
              EXPECT_NE(text.find("rank 1 (pid"), std::string::npos) << text;
              EXPECT_NE(text.find(way.ending == Ending::exit_after_destroy ? "destroyed" : "died"), std::string::npos) << text;
              // The survivors, ranks 0 and 2, compare.
              seat.board.notes[1 + seat.rank] = static_cast<int64_t>(std::hash<std::string>{}(text) | 1);
              while (seat.board.notes[3 - seat.rank] == 0) std::this_thread::sleep_for(1ms);
              EXPECT_EQ(seat.board.notes[1], seat.board.notes[3]) << text;
            });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Ending ending : {Ending::kill, Ending::segv, Ending::exit, Ending::exit_after_destroy})
    for (int collective = 0; collective < fcclCollSend; ++collective)
      for (const bool large : {false, true})
        if (collective != fcclCollBarrier || !large) all.push_back({ending, static_cast<fcclColl_t>(collective), large});
  for (const Ending ending : {Ending::kill, Ending::segv, Ending::exit, Ending::exit_after_destroy})
    all.push_back({ending, fcclCollAllGather, true, true});
  for (const Ending ending : {Ending::kill, Ending::segv, Ending::exit, Ending::exit_after_destroy})
    for (const fcclColl_t collective : {fcclCollAllGather, fcclCollReduceScatter, fcclCollAllReduce, fcclCollAlltoAll})
      all.push_back({ending, collective, true, false, Buffers::arena});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, DeathInside, ::testing::ValuesIn(cases()), [](const ::testing::TestParamInfo<Case>& info) {
  return std::string(kEndings[static_cast<int>(info.param.ending)]) + "_in_" + fcclCollName(info.param.collective) +
         (info.param.buffers == Buffers::arena ? "_by_mapped"
          : info.param.in_place                ? "_by_attach"
          : info.param.large                   ? "_by_ring"
                                               : "_by_mailbox");
});

}  // namespace
}  // namespace fccl::core::testing
