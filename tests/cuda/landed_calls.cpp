// LandedCalls: makes the calls and asks metrics.
#include "cuda/landed_calls.h"

namespace fccl::core::testing {
namespace {

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

}  // namespace

uint64_t calls_by(const std::string& path_in_metrics, fcclComm_t comm, fcclColl_t collective) {
  uint64_t calls = 0;
  for (int path = 0; fcclMetricsPathName(path) != nullptr; ++path)
    for (int size = 0; fcclMetricsPathName(path) == path_in_metrics && fcclMetricsLargestSize(size) != 0; ++size) {
      fcclCallMetrics_t metrics{};
      metrics.size = sizeof metrics;
      EXPECT_TRUE(succeeded(fcclCommGetCallMetrics(comm, collective, path, size, &metrics)));
      calls += metrics.calls;
    }
  return calls;
}

void expect_landed(CudaSeat& seat, const std::string& path) {
  const Comm comm(seat.seat(), config_of_cuda_tests());
  std::vector<uint64_t> calls;
  for (const fcclColl_t collective : kLanded) calls.push_back(expect_right(seat, comm, collective));
  EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls_by("landed", comm, kLanded[i]), path == "host" ? calls[i] : 0);
    EXPECT_EQ(calls_by("peer", comm, kLanded[i]), path == "peer" ? calls[i] : 0);
  }
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

}  // namespace fccl::core::testing
