// Random calls on random GPUs, with a fault or none: every rank ends, with right results or with the failure that all have.
// And ranks that are killed, whom the others name in time.
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "cuda/landed_calls.h"

namespace fccl::core::testing {
namespace {

enum class Fault { none, an_error, stop };

constexpr int kConnections[] = {1, 2, 8};

// The run that a seed stands for.
struct Weather {
  std::string path;
  int ranks;
  Fault fault;
  OnGpus on;
  std::string buffer;
  std::string landing;
  std::string queue;

  explicit Weather(uint64_t seed) {
    std::mt19937_64 dice(seed);
    const auto below = [&](uint64_t bound) { return dice() % bound; };
    path = kCudaPaths[below(std::size(kCudaPaths))];
    landing = std::to_string(16384 << below(2));
    ranks = static_cast<int>(1 + below(4));
    fault = static_cast<Fault>(below(3));
    // A GPU that stops, or has few connections, stops all ranks on it.
    const bool shared = fault != Fault::stop && below(2) == 0;
    on = {.ranks = ranks, .gpus = shared ? 1 : ranks, .options = {.seed = seed, .delay_us = static_cast<int>(below(200))}};
    if (!shared) on.options.connections = kConnections[below(std::size(kConnections))];
    if (below(3) == 0) on.options.most_pitch = 2000;
    buffer = std::to_string(4096 << below(4));
    queue = std::to_string(32 + below(100));
  }
};

// After both lanes are set up: what stops during set-up is nothing that the library could end.
void set_up_lanes(CudaSeat& seat, fcclComm_t comm) {
  for (const fcclColl_t collective : {fcclCollAllReduce, fcclCollAllGather})
    EXPECT_EQ(try_on_gpu({.collective = collective, .dtype = fcclFloat32, .count = 10}, seat, comm), "");
  seat.meet();
}

// A sum of which a GPU has a kernel, among two ranks or more; the smallest of them bounce.
Recipe random_sum(std::mt19937_64& dice, int iteration) {
  constexpr fcclDataType_t kTypes[] = {fcclFloat32, fcclFloat16, fcclBfloat16};
  constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::premul_sum};
  Recipe sum{.collective = dice() % 2 == 0 ? fcclCollAllReduce : fcclCollReduceScatter,
             .dtype = kTypes[dice() % std::size(kTypes)],
             .count = 1 + dice() % 10'000,
             .op = kOps[dice() % std::size(kOps)],
             .misalignment = dice() % 3,
             .iteration = iteration};
  sum.widens = may_widen(sum.collective, sum.dtype) && dice() % 2 == 0;
  sum.in_place = !sum.widens && dice() % 3 == 0;
  return sum;
}

// Most calls by the peer path are such sums, which have a queue of their own.
Recipe random_call(std::mt19937_64& dice, const Weather& weather, int iteration) {
  return weather.path == "peer" && dice() % 3 != 0 ? random_sum(dice, iteration)
                                                   : random_recipe(dice, weather.ranks, 10'000, iteration);
}

void run_rank(CudaSeat& seat, const Weather& weather, uint64_t seed) {
  fcclConfig_t config = config_of_cuda_tests();
  config.timeoutMs = weather.fault == Fault::none ? 20'000 : 300 * kSlowdown;
  Comm comm(seat.seat(), config);
  set_up_lanes(seat, comm);
  std::mt19937_64 of_all(seed), of_rank(seed * 64 + static_cast<uint64_t>(seat.rank()));
  const bool is_at_fault =
      weather.fault != Fault::none && seat.rank() == static_cast<int>(seed % static_cast<uint64_t>(weather.ranks));
  constexpr int kCalls = 12;
  const int when = static_cast<int>(of_rank() % kCalls);
  std::vector<std::unique_ptr<CudaTrial>> trials;
  for (int i = 0; i < kCalls; ++i)
    trials.push_back(std::make_unique<CudaTrial>(random_call(of_all, weather, i), seat, i % 2 == 0));
  for (int i = 0; i < kCalls; ++i) {
    if (is_at_fault && i == when && weather.fault == Fault::an_error) seat.gpu().fail_call_after(1 + of_rank() % 20);
    if (is_at_fault && i == when && weather.fault == Fault::stop) seat.gpu().stop();
    (void)trials[static_cast<size_t>(i)]->issue(comm);
  }
  const bool has_stopped = is_at_fault && weather.fault == Fault::stop;
  const fcclResult_t ended = fcclCommFinalize(comm);
  const std::string text = fcclGetLastError(comm);
  if (weather.fault == Fault::none && weather.path == "peer" && weather.ranks > 1) {
    EXPECT_GT(calls_by("peer", comm, fcclCollReduceScatter) + calls_by("peer", comm, fcclCollAllReduce), 0U)
        << "no kernel has run";
  }
  const int64_t begin = now_ns();
  fcclCommDestroy(comm.release());
  EXPECT_TRUE(in_time(begin, 5000));
  if (!has_stopped) {
    seat.gpu().synchronize(seat.stream());
    EXPECT_TRUE(in_time(begin, 15'000)) << "a program was not released";
  }
  if (weather.fault == Fault::none) {
    EXPECT_EQ(ended, fcclSuccess) << text;
  }
  for (const auto& trial : trials)
    if (ended == fcclSuccess && !has_stopped) {
      EXPECT_EQ(trial->fault(), "");
    }
  seat.meet();
  if (has_stopped) seat.gpu().go_on();
  seat.gpu().synchronize(seat.stream());
  seat.meet();
}

void run_seed(uint64_t seed, const Weather& weather) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Setting path("FCCL_CUDA_PATH", weather.path), buffer("FCCL_CUDA_BUFFER", weather.buffer),
      landing("FCCL_CUDA_LANDING", weather.landing), queue("FCCL_CUDA_QUEUE", weather.queue);
  run_on_gpus(weather.on, [&](CudaSeat& seat) { run_rank(seat, weather, seed); });
  if (::testing::Test::HasFailure())
    std::printf("seed %llu: %s, %d ranks on %d GPUs with %d connections, fault %d\n", static_cast<unsigned long long>(seed),
                weather.path.c_str(), weather.ranks, weather.on.gpus, weather.on.options.connections,
                static_cast<int>(weather.fault));
}

// From the first one on, so many of those that hold.
std::vector<uint64_t> seeds_from(uint64_t first, size_t count, const std::function<bool(Fault)>& holds_for) {
  std::vector<uint64_t> seeds;
  for (uint64_t seed = first; seeds.size() < count; ++seed)
    if (holds_for(Weather(seed).fault)) seeds.push_back(seed);
  return seeds;
}

// A seed waits for most of its time: for deadlines, and for a GPU that has stopped. So several are run side by side, in
// processes of their own, since settings and GPUs are of a process. The thread sanitizer sees one process only.
void run_seeds(const std::vector<uint64_t>& seeds, size_t at_once, std::chrono::seconds limit) {
  const auto run_share = [&](size_t place, size_t shares) {
    for (; place < seeds.size() && !::testing::Test::HasFailure(); place += shares)
      run_seed(seeds[place], Weather(seeds[place]));
  };
  if (every_kind().back() == RanksAs::threads) return run_share(0, 1);
  run_ranks({.as = RanksAs::processes, .ranks = static_cast<int>(at_once), .limit = limit},
            [&](const Seat& seat) { run_share(static_cast<size_t>(seat.rank), at_once); });
}

// The rank is a process, as all are. The collective is one that goes by the path's slots, if it has some.
void run_kill(uint64_t seed) {
  SCOPED_TRACE("kill " + std::to_string(seed));
  std::mt19937_64 dice(seed);
  const std::string path = kCudaPaths[1 + dice() % (std::size(kCudaPaths) - 1)];
  constexpr fcclColl_t kCollectives[] = {fcclCollAllGather, fcclCollReduceScatter, fcclCollAllReduce};
  const fcclColl_t collective = kCollectives[path == "host" ? 0 : dice() % std::size(kCollectives)];
  const simulated::GpuOptions options{
      .seed = seed, .connections = kConnections[dice() % std::size(kConnections)], .delay_us = static_cast<int>(dice() % 200)};
  const Setting taken("FCCL_CUDA_PATH", path), landing("FCCL_CUDA_LANDING", kSmallSlots), buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 3, .options = options, .host_of = {0, 0, 0}, .killed = {2}},
              [&, operations = dice() % 200](CudaSeat& seat) {
                Comm comm(seat.seat(), config_of_cuda_tests());
                set_up_lanes(seat, comm);
                expect_end_by_death(seat, comm, {.collective = collective, .dtype = fcclFloat32, .count = 30'000}, operations);
              });
}

void run_kills(uint64_t first, uint64_t count) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) run_kill(seed);
}

bool is_any(Fault) { return true; }
bool is_one(Fault fault) { return fault != Fault::none; }

TEST(CudaSeeds, of_fifteen_end_on_every_rank) { run_seeds(seeds_from(1, 15, is_any), 5, std::chrono::seconds(60)); }

// A run of ranks one after the other is too slow for a hundred seeds; the fifteen above cover it.
TEST(CudaSeeds, of_a_hundred_faults_end_on_every_rank) {
  if (every_kind().back() == RanksAs::threads) GTEST_SKIP() << "a hundred seeds one after the other take too long";
  run_seeds(seeds_from(100, 100, is_one), 10, std::chrono::seconds(100));
}

TEST(CudaSeeds, of_nine_kills_end_on_every_other_rank_which_names_the_killed_one) { run_kills(1, 9); }

TEST(CudaSeedsCampaign, of_a_thousand_faults_end_on_every_rank) {
  run_seeds(seeds_from(1000, 1000, is_one), 8, std::chrono::seconds(850));
}

TEST(CudaSeedsCampaign, of_five_hundred_kills_end_on_every_other_rank_which_names_the_killed_one) { run_kills(1000, 500); }

}  // namespace
}  // namespace fccl::core::testing
