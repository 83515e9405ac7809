// The life of an elastic job: a rank is killed inside a collective, the others shrink, a new process grows in; and growths in
// which a rank dies. Ranks are processes here.
#include "processes/elastic.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kSeats = 4;  // the seats of the ranks
// The seat behind the ranks is the new process.
constexpr int kNewSeat = kSeats;
// The notes of the whiteboard: when the victim was killed, and whether the id is there.
constexpr size_t kKilled = 0, kIdIsThere = 1;

// How the victim's call is made.
enum class Form {
  plain,
  widens,    // into float32
  tagged,    // received from any source
  in_group,  // two collectives beside each other, with a send and a receive
};

// The call in which the victim is killed.
struct Work {
  const char* name;
  fcclColl_t collective;
  Form form = Form::plain;
};

void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

constexpr Work kWorks[] = {{"AllReduce", fcclCollAllReduce},
                           {"AlltoAll", fcclCollAlltoAll},
                           {"SendRecv", fcclCollSend},
                           {"AllGatherV", fcclCollAllGatherV},
                           {"AllGather", fcclCollAllGather},
                           {"ReduceScatter", fcclCollReduceScatter},
                           {"Reduce", fcclCollReduce},
                           {"Broadcast", fcclCollBroadcast},
                           {"Gather", fcclCollGather},
                           {"Scatter", fcclCollScatter},
                           {"Barrier", fcclCollBarrier},
                           {"ReduceScatterV", fcclCollReduceScatterV},
                           {"AlltoAllV", fcclCollAlltoAllV},
                           {"AllReduceTyped", fcclCollAllReduce, Form::widens},
                           {"ReduceTyped", fcclCollReduce, Form::widens},
                           {"ReduceScatterTyped", fcclCollReduceScatter, Form::widens},
                           {"SendRecvTagged", fcclCollSend, Form::tagged},
                           {"Group", fcclCollAllReduce, Form::in_group}};

// Messages of each rank to the next one and from the one before it; must live until the sends are done.
class Ring {
 public:
  Ring(int rank, int ranks, int iteration)
      : next_((rank + 1) % ranks),
        before_((rank + ranks - 1) % ranks),
        iteration_(iteration),
        given_(20'000),
        taken_(20'000, -7) {
    for (size_t i = 0; i < given_.size(); ++i) given_[i] = value(rank, i);
  }
  // Within a group.
  void issue(fcclComm_t comm, bool tagged) {
    if (tagged) {
      const int tag = iteration_ % 5;
      (void)fcclSendTagged(given_.data(), given_.size(), fcclInt32, next_, tag, comm, nullptr);
      (void)fcclRecvTagged(taken_.data(), taken_.size(), fcclInt32, FCCL_ANY_SOURCE, tag, &source_, comm, nullptr);
    } else {
      (void)fcclSend(given_.data(), given_.size(), fcclInt32, next_, comm, nullptr);
      (void)fcclRecv(taken_.data(), taken_.size(), fcclInt32, before_, comm, nullptr);
    }
  }
  void check() const {
    EXPECT_TRUE(source_ == -7 || source_ == before_) << source_;
    for (size_t i = 0; i < taken_.size(); ++i)
      if (taken_[i] != value(before_, i)) FAIL() << "index " << i << " is " << taken_[i] << ", not " << value(before_, i);
  }

 private:
  int value(int of, size_t index) const { return of * 1'000'003 + static_cast<int>(index) * 7 + iteration_; }

  int next_, before_, iteration_;
  int source_ = -7;
  std::vector<int> given_, taken_;
};

Trial make_trial(const Work& work, fcclColl_t collective, int rank, int ranks, int iteration) {
  const bool widens = work.form == Form::widens;
  return Trial({.collective = collective,
                .dtype = widens ? fcclBfloat16 : fcclInt32,
                .count = collective == fcclCollBarrier ? 0u : 60'000u,
                .root = iteration % ranks,
                .iteration = iteration,
                .finite = true,
                .widens = widens},
               rank, ranks);
}

fcclResult_t call_together(const Work& work, fcclComm_t comm, int rank, int ranks, int iteration) {
  Ring ring(rank, ranks, iteration);
  Trial sum = make_trial(work, fcclCollAllReduce, rank, ranks, iteration);
  Trial gather = make_trial(work, fcclCollAllGatherV, rank, ranks, iteration);
  (void)fcclGroupStart();
  if (work.form == Form::in_group) (void)sum.issue(comm);
  ring.issue(comm, work.form == Form::tagged);
  if (work.form == Form::in_group) (void)gather.issue(comm);
  const fcclResult_t result = fcclGroupEnd();
  if (result != fcclSuccess) return result;
  ring.check();
  if (work.form == Form::in_group) {
    EXPECT_EQ(sum.fault(), "");
    EXPECT_EQ(gather.fault(), "");
  }
  return result;
}

// One call, with its result checked where it has one.
fcclResult_t work_once(const Work& work, fcclComm_t comm, int rank, int ranks, int iteration) {
  if (work.collective == fcclCollSend || work.form == Form::in_group) return call_together(work, comm, rank, ranks, iteration);
  Trial trial = make_trial(work, work.collective, rank, ranks, iteration);
  const fcclResult_t result = trial.issue(comm);
  if (result == fcclSuccess) {
    EXPECT_EQ(trial.fault(), "");
  }
  return result;
}

// Repeats the work until it fails by the death of the victim, which ends in it.
void work_until_death(const Seat& seat, fcclComm_t comm, const Work& work, int victim) {
  std::thread killer;
  if (seat.rank == victim)
    killer = std::thread([&] {
      std::this_thread::sleep_for(10ms + std::chrono::microseconds(now_ns() / 1000 % 5000));
      seat.board.notes[kKilled] = now_ns();
      kill(getpid(), SIGKILL);
    });
  fcclResult_t result = fcclSuccess;
  for (int i = 0; result == fcclSuccess; ++i) result = work_once(work, comm, seat.rank, kSeats, i);
  if (killer.joinable()) killer.join();
  const std::string text = fcclGetLastError(comm);
  EXPECT_EQ(result, fcclRemoteError) << text;
  EXPECT_NE(text.find("rank " + std::to_string(victim) + " (pid"), std::string::npos) << text;
}

void expect_dead(fcclComm_t comm, const std::vector<int>& dead) {
  std::vector<int> named(kSeats, -7);
  int count = kSeats;
  EXPECT_TRUE(succeeded(fcclCommGetDeadRanks(comm, named.data(), &count)));
  named.resize(static_cast<size_t>(count));
  EXPECT_EQ(named, dead);
}

void raise_to(std::atomic<int64_t>& most, double ms) {
  const auto value = static_cast<int64_t>(ms);
  for (int64_t known = most; known < value && !most.compare_exchange_weak(known, value);) continue;
}

// The longest that each step of a round has taken on any rank, in milliseconds; shared by the processes.
struct Longest {
  std::atomic<int64_t> shrink{0};  // from the kill on
  std::atomic<int64_t> grow{0};
};

fcclUniqueId await_id(const Seat& seat) {
  while (seat.board.notes[kIdIsThere] == 0) std::this_thread::sleep_for(1ms);
  return seat.board.id;
}

// As a survivor: the communicator of three, which works.
fcclComm_t go_on_without(int victim, const Seat& seat, fcclComm_t comm, Longest& longest) {
  expect_dead(comm, {victim});
  const Made made = shrink(comm, {victim}, FCCL_SHRINK_ABORT);
  EXPECT_EQ(made.result, fcclSuccess) << made.text;
  const double ms = ms_since(seat.board.notes[kKilled]);
  EXPECT_LT(ms, 1000 * kSlowdown);
  raise_to(longest.shrink, ms);
  fcclCommDestroy(comm);
  if (made.comm != nullptr) {
    EXPECT_EQ(fault_as_rank(made.comm, seat.rank - (seat.rank > victim ? 1 : 0), kSeats - 1), "");
  }
  return made.comm;
}

// The end of a round for survivors (`comm`) and the new one (null): four ranks that work.
void grow_to_four(fcclComm_t comm, int rank, const Seat& seat, Longest& longest) {
  fcclUniqueId id{};
  if (comm == nullptr) {
    id = await_id(seat);
  } else if (rank == 0) {
    ASSERT_TRUE(succeeded(fcclCommGetUniqueId(comm, &seat.board.id)));
    seat.board.notes[kIdIsThere] = 1;
  }
  const int64_t begin = now_ns();
  const Made made = grow(comm, kSeats, comm == nullptr ? &id : nullptr, rank);
  ASSERT_EQ(made.result, fcclSuccess) << made.text;
  const Comm grown(made.comm);
  EXPECT_TRUE(in_time(begin, 2000));
  raise_to(longest.grow, ms_since(begin));
  fcclCommDestroy(comm);
  EXPECT_EQ(fault_as_rank(grown, rank, kSeats), "");
  expect_dead(grown, {});
}

void live_elastically(const Work& work, int victim, Longest& longest) {
  run_ranks({.as = RanksAs::processes, .ranks = kSeats + 1, .killed = {victim}}, [&](const Seat& seat) {
    fcclComm_t comm = make_parent(seat, kSeats);
    if (seat.rank == kNewSeat) return grow_to_four(nullptr, kSeats - 1, seat, longest);
    work_until_death(seat, comm, work, victim);
    comm = go_on_without(victim, seat, comm, longest);
    ASSERT_NE(comm, nullptr);
    grow_to_four(comm, seat.rank - (seat.rank > victim ? 1 : 0), seat, longest);
  });
}

std::string name_of(const ::testing::TestParamInfo<Work>& each) { return each.param.name; }

class Elastic : public ::testing::TestWithParam<Work> {};

TEST_P(Elastic, job_whose_rank_is_killed_in_a_call_goes_on_with_three_and_then_with_a_new_fourth) {
  Longest longest;
  // Another one in each kind of call.
  const int victim = GetParam().collective % kSeats;
  live_elastically(GetParam(), victim, longest);
}

INSTANTIATE_TEST_SUITE_P(In, Elastic, ::testing::ValuesIn(kWorks), name_of);

// The times of the rounds of one kind of call.
class Times {
 public:
  void add(int64_t ms) { all_.push_back(ms); }
  std::string text() {
    std::ranges::sort(all_);
    return "median " + std::to_string(all_[all_.size() / 2]) + " ms, worst " + std::to_string(all_.back()) + " ms";
  }

 private:
  std::vector<int64_t> all_;
};

class ElasticCampaign : public ::testing::TestWithParam<Work> {};

TEST_P(ElasticCampaign, kills_a_rank_in_the_call_a_hundred_times) {
  auto* longest = new (::mmap(nullptr, sizeof(Longest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Longest;
  constexpr int kRounds = 100;
  Times shrinks, growths;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round);
    live_elastically(GetParam(), round % kSeats, *longest);
    shrinks.add(longest->shrink.exchange(0));
    growths.add(longest->grow.exchange(0));
  }
  std::printf("%s: from the kill to a communicator of three: %s; growth to four: %s\n", GetParam().name, shrinks.text().c_str(),
              growths.text().c_str());
}

INSTANTIATE_TEST_SUITE_P(In, ElasticCampaign, ::testing::ValuesIn(kWorks), name_of);

TEST(GrowDeath, of_a_new_rank_ends_it_for_all_names_it_and_leaves_the_parent_good) {
  run_ranks({.as = RanksAs::processes, .ranks = 4, .killed = {3}}, [](const Seat& seat) {
    const Comm parent(make_parent(seat, 2));
    const fcclUniqueId id = agree_to_grow(seat, parent);
    // Rank 2, which is new too, comes in time; rank 3 dies when the others have joined, and with them rank 4 is missing.
    if (seat.rank == 3)
      std::thread([] {
        std::this_thread::sleep_for(150ms);
        kill(getpid(), SIGKILL);
      }).detach();
    const Made made = grow(parent, 5, &id, seat.rank);
    if (seat.rank == 3) std::this_thread::sleep_for(30s);
    EXPECT_EQ(made.result, fcclRemoteError);
    EXPECT_NE(made.text.find("rank 3 (pid"), std::string::npos) << made.text;
    if (seat.rank < 2) {
      EXPECT_EQ(fault_as_rank(parent, seat.rank, 2), "");
    }
  });
}

TEST(GrowDeath, of_a_rank_of_the_parent_ends_it_for_all_and_names_it) {
  for (const int victim : {0, 1})
    run_ranks({.as = RanksAs::processes, .ranks = 3, .killed = {victim}}, [&](const Seat& seat) {
      const Comm parent(make_parent(seat, 2));
      // The victim makes the id in one round, and not in the other.
      const fcclUniqueId id = agree_to_grow(seat, parent);
      if (seat.rank == victim) {
        std::thread([&seat] {
          std::this_thread::sleep_for(150ms);
          seat.board.notes[kKilled] = now_ns();
          kill(getpid(), SIGKILL);
        }).detach();
        // This growth asks for four ranks, one of which never comes.
        static_cast<void>(grow(parent, 4, &id, seat.rank));
        std::this_thread::sleep_for(30s);
      }
      const Made made = grow(parent, 4, &id, seat.rank);
      EXPECT_EQ(made.result, fcclRemoteError);
      EXPECT_TRUE(in_time(seat.board.notes[kKilled], 1000));
      // With the one that made it goes the root.
      if (seat.rank == 2 && victim == 0) {
        EXPECT_NE(made.text.find("did not stay"), std::string::npos) << made.text;
      } else {
        EXPECT_NE(made.text.find("rank " + std::to_string(victim) + " (pid"), std::string::npos) << made.text;
      }
    });
}

}  // namespace
}  // namespace fccl::core::testing
