// Many ranks, many communicators, many inits; and what waiting costs.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <thread>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::testing {
namespace {

using namespace std::chrono_literals;

// The bytes of this process's mappings whose name contains `name`.
size_t mapped_bytes(const std::string& name) {
  size_t bytes = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) == std::string::npos) continue;
    const size_t dash = line.find('-');
    bytes += std::stoull(line.substr(dash + 1), nullptr, 16) - std::stoull(line.substr(0, dash), nullptr, 16);
  }
  return bytes;
}

int count_mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<int>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

// Of all threads of this process.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

TEST(ManyProcesses, as_64_ranks_meet_within_three_seconds_in_at_most_8_mib_each_and_reduce_right) {
  run_ranks({.as = RanksAs::processes, .ranks = 64, .limit = 100s}, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    fcclConfig_t config = config_of_tests();
    fcclComm_t made = nullptr;
    const int64_t begin = now_ns();
    ASSERT_TRUE(succeeded(fcclCommInitRankConfig(&made, seat.ranks, id, seat.rank, &config)));
    EXPECT_LT(ms_since(begin), 3000 * kSlowdown);
    const Comm comm(made);
    const size_t bytes = mapped_bytes("memfd:fccl");
    EXPECT_GT(bytes, 0);
    EXPECT_LE(bytes, 64 * (size_t{8} << 20));
    for (const size_t count : {1, 30'000})
      EXPECT_EQ(
          try_collective({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = count}, seat.rank, seat.ranks, comm),
          "");
  });
}

class Scale : public ::testing::TestWithParam<Size> {};

TEST_P(Scale, of_200_communicators_at_once_stays_under_1024_descriptors) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::vector<std::unique_ptr<Comm>> comms;
    for (int i = 0; i < 200; ++i) comms.push_back(std::make_unique<Comm>(seat));
    seat.meet();
    EXPECT_LT(count_descriptors(), 1024);
    int iteration = 0;
    for (const auto& comm : comms)
      EXPECT_EQ(try_collective({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 100, .iteration = ++iteration},
                               seat.rank, seat.ranks, *comm),
                "");
    seat.meet();
  });
}

TEST_P(Scale, of_8_communicators_that_each_rank_issues_in_its_own_order_on_streams_does_not_deadlock) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    constexpr size_t kComms = 8;
    std::vector<std::unique_ptr<Comm>> comms;
    std::array<fcclStream_t, kComms> streams{};
    for (fcclStream_t& stream : streams) {
      comms.push_back(std::make_unique<Comm>(seat));
      ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    }
    std::mt19937_64 calls(7), order(static_cast<unsigned>(seat.rank));
    for (int round = 0; round < 20; ++round) {
      std::vector<std::unique_ptr<Trial>> trials;
      std::vector<size_t> turns(kComms);
      std::iota(turns.begin(), turns.end(), 0);
      for (size_t i = 0; i < kComms; ++i)
        trials.push_back(std::make_unique<Trial>(random_recipe(calls, seat.ranks, 60'000, round), seat.rank, seat.ranks));
      std::shuffle(turns.begin(), turns.end(), order);
      for (const size_t i : turns) EXPECT_TRUE(succeeded(trials[i]->issue(*comms[i], streams[i])));
      for (const fcclStream_t stream : streams) EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
    }
    for (const fcclStream_t stream : streams) EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
  });
}

// Some block, and some queue what they call, on communicators of their own.
TEST_P(Scale, of_several_threads_per_rank_with_communicators_of_their_own_does_not_deadlock) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::vector<std::unique_ptr<Comm>> comms;
    for (int i = 0; i < 4; ++i) comms.push_back(std::make_unique<Comm>(seat));
    std::vector<std::string> faults(comms.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < comms.size(); ++i)
      threads.emplace_back([&, i] {
        std::mt19937_64 calls(i);
        fcclStream_t stream = nullptr;
        if (i % 2 == 1 && fcclStreamCreate(&stream) != fcclSuccess) faults[i] = fcclGetLastError(nullptr);
        for (int round = 0; round < 30 && faults[i].empty(); ++round) {
          Trial trial(random_recipe(calls, seat.ranks, 60'000, round), seat.rank, seat.ranks);
          const fcclResult_t issued = trial.issue(*comms[i], stream);
          const fcclResult_t done = stream == nullptr ? issued : fcclStreamSynchronize(stream);
          faults[i] = issued == fcclSuccess && done == fcclSuccess ? trial.fault() : fcclGetLastError(nullptr);
        }
        if (stream != nullptr) fcclStreamDestroy(stream);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(faults, std::vector<std::string>(comms.size()));
  });
}

// Waits for the calls of the last rank, which comes late, and returns the part of a processor that this took.
double load_while_waiting(const Seat& seat, const Comm& comm, fcclStream_t stream) {
  constexpr auto kLate = 2s;
  const bool late = seat.rank == seat.ranks - 1;
  seat.meet();
  if (late) std::this_thread::sleep_for(kLate);
  const double before = processor_seconds();
  const int64_t begin = now_ns();
  EXPECT_TRUE(succeeded(fcclBarrier(comm, stream)));
  EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
  return late ? 0 : (processor_seconds() - before) / (ms_since(begin) * 1e-3);
}

TEST(Waiting, of_an_operation_on_a_stream_burns_under_5_percent_of_a_core) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    fcclStream_t stream = nullptr;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    EXPECT_LT(load_while_waiting(seat, comm, stream), 0.05 * kSlowdown);
    EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
  });
}

TEST(Waiting, of_a_blocked_call_burns_under_5_percent_of_a_core) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_LT(load_while_waiting(seat, comm, nullptr), 0.05 * kSlowdown);
  });
}

INSTANTIATE_TEST_SUITE_P(As, Scale, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

class LongScale : public Scale {};

TEST_P(LongScale, of_1000_inits_and_destroys_leaves_no_memory_descriptor_or_thread) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const auto make_and_end = [&] {
      const Comm comm(seat);
      EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    };
    for (int round = 0; round < 50; ++round) make_and_end();
    seat.meet();
    // The bootstrap's thread may end a moment after the last rank has joined.
    std::this_thread::sleep_for(200ms);
    const int descriptors = count_descriptors(), threads = count_threads(), mappings = count_mappings();
    const size_t resident = resident_bytes();
    seat.meet();
    for (int round = 0; round < 1000; ++round) make_and_end();
    seat.meet();
    std::this_thread::sleep_for(200ms);
    EXPECT_LE(count_descriptors(), descriptors);
    EXPECT_LE(count_threads(), threads);
    // A thread's stack or an arena of malloc may come late; one leak per init would show a thousand times.
    EXPECT_LE(count_mappings(), mappings + 50);
    EXPECT_LE(resident_bytes(), resident + (size_t{1} << 20) * kSlowdown);
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, LongScale, ::testing::ValuesIn(sizes(2, 2)), name_of_size);

}  // namespace
}  // namespace fccl::testing
