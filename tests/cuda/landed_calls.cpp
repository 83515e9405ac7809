// LandedCalls: makes the calls and asks metrics.
#include "cuda/landed_calls.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr fcclColl_t kLanded[] = {fcclCollAllGather, fcclCollBroadcast};

// Calls of many sizes; returns how many there were.
uint64_t expect_right(CudaSeat& seat, fcclComm_t comm, fcclColl_t collective) {
  uint64_t calls = 0;
  for (const size_t count : {1, 3, 1023, 1024, 1025, 4097, 30'001})
    for (const bool in_place : {false, true}) {
      EXPECT_EQ(try_on_gpu({.collective = collective,
                            .dtype = fcclFloat32,
                            .count = count,
                            .root = static_cast<int>(calls) % seat.ranks(),
                            .in_place = in_place,
                            .iteration = static_cast<int>(calls)},
                           seat, comm),
                "");
      ++calls;
    }
  return calls;
}

template <class See>
void each_kind(fcclComm_t comm, fcclColl_t collective, See see) {
  for (int path = 0; fcclMetricsPathName(path) != nullptr; ++path)
    for (int size = 0; fcclMetricsLargestSize(size) != 0; ++size) {
      fcclCallMetrics_t metrics{};
      metrics.size = sizeof metrics;
      EXPECT_TRUE(succeeded(fcclCommGetCallMetrics(comm, collective, path, size, &metrics)));
      see(fcclMetricsPathName(path), metrics);
    }
}

// Dies when its GPU has done so many operations more, in another step each time.
void die_after(CudaSeat& seat, uint64_t operations) {
  const uint64_t last = seat.gpu().operations() + operations;
  std::thread([&seat, last] {
    while (seat.gpu().operations() < last) std::this_thread::sleep_for(10us);
    seat.seat().board.notes[0] = now_ns();
    raise(SIGKILL);
  }).detach();
}

}  // namespace

uint64_t calls_by(const std::string& path_in_metrics, fcclComm_t comm, fcclColl_t collective) {
  uint64_t calls = 0;
  each_kind(comm, collective, [&](const char* path, const fcclCallMetrics_t& metrics) {
    if (path == path_in_metrics) calls += metrics.calls;
  });
  return calls;
}

uint64_t copied_in(fcclComm_t comm, fcclColl_t collective) {
  uint64_t copied = 0;
  each_kind(comm, collective, [&](const char*, const fcclCallMetrics_t& metrics) { copied += metrics.copied; });
  return copied;
}

void expect_landed(CudaSeat& seat, const std::string& path) {
  const Comm comm(seat.seat(), config_of_cuda_tests());
  std::vector<uint64_t> calls;
  for (const fcclColl_t collective : kLanded) calls.push_back(expect_right(seat, comm, collective));
  EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls_by("landed", comm, kLanded[i]), path == "host" ? calls[i] : 0);
    EXPECT_EQ(calls_by("peer", comm, kLanded[i]), path == "peer" ? calls[i] : 0);
    EXPECT_EQ(copied_in(comm, kLanded[i]) == 0, path == "host" || path == "peer");
  }
}

void expect_end_by_death(CudaSeat& seat, fcclComm_t comm, const Recipe& recipe, uint64_t operations) {
  seat.meet();
  if (seat.rank() == 2) die_after(seat, operations);
  std::vector<std::unique_ptr<CudaTrial>> trials;
  for (int i = 0; i < 4; ++i) {
    Recipe next = recipe;
    next.iteration = i;
    trials.push_back(std::make_unique<CudaTrial>(next, seat));
    (void)trials.back()->issue(comm);
  }
  if (seat.rank() == 2) std::this_thread::sleep_for(20s);
  const std::atomic<int64_t>& died = seat.seat().board.notes[0];
  EXPECT_EQ(await_failure(comm, died, 3 * kSecond), fcclRemoteError);
  EXPECT_TRUE(in_time(died, 1000));
  expect_words(fcclGetLastError(comm), {"rank 2 (pid"});
  seat.gpu().synchronize(seat.stream());
  EXPECT_TRUE(in_time(died, 2000)) << "a program was not released";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

}  // namespace fccl::core::testing
