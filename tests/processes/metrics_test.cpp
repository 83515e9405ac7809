// Metrics: by the C interface and as text, of ranks that call and of one that comes late.
#include <string>
#include <thread>

#include "processes/metrics_text.h"
#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

fcclCallMetrics_t metrics_of(fcclComm_t comm, fcclColl_t collective, int path, int size) {
  fcclCallMetrics_t metrics{};
  metrics.size = sizeof metrics;
  EXPECT_TRUE(succeeded(fcclCommGetCallMetrics(comm, collective, path, size, &metrics)));
  return metrics;
}

class Metrics : public ::testing::TestWithParam<Size> {};

TEST_P(Metrics, of_a_counted_program_agree_with_its_counters_and_its_text) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    constexpr fcclColl_t kCollective = fcclCollAllReduce;
    const size_t counts[] = {1, 500, 50'000, 500'000};
    for (int i = 0; i < 70; ++i)
      EXPECT_EQ(try_collective({.collective = kCollective, .dtype = fcclFloat32, .count = counts[i % 4], .iteration = i},
                               seat.rank, seat.ranks, comm),
                "");
    unsigned long long calls = 0, bytes = 0, timed = 0, in_buckets = 0;
    for (int path = 0; fcclMetricsPathName(path) != nullptr; ++path)
      for (int size = 0; fcclMetricsLargestSize(size) != 0; ++size) {
        const fcclCallMetrics_t metrics = metrics_of(comm, kCollective, path, size);
        calls += metrics.calls;
        bytes += metrics.bytes;
        timed += metrics.timed;
        for (const unsigned long long bucket : metrics.buckets) in_buckets += bucket;
        if (metrics.calls > 0) {
          EXPECT_LE(metrics.bytes, metrics.calls * fcclMetricsLargestSize(size));
          EXPECT_GE(metrics.bytes, size == 0 ? 0 : metrics.calls * fcclMetricsLargestSize(size - 1));
        }
      }
    fcclCounter_t counter{};
    ASSERT_TRUE(succeeded(fcclCommGetCounter(comm, kCollective, &counter)));
    EXPECT_EQ(calls, 70U);
    EXPECT_EQ(calls, counter.calls);
    EXPECT_EQ(bytes, counter.bytes);
    EXPECT_EQ(timed, in_buckets);
    EXPECT_GE(timed, 1U);
    seat.meet();
    const std::string label = R"(collective="AllReduce")";
    EXPECT_EQ(sum_of(text_of_metrics(true), "fccl_calls_total", label), 70.0 * seat.ranks);
    EXPECT_EQ(sum_of(text_of_metrics(true), "fccl_bytes_total", label), static_cast<double>(bytes) * seat.ranks);
    seat.meet();
  });
}

TEST_P(Metrics, name_the_rank_that_came_late_as_the_one_waited_for) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const int late = seat.ranks - 1;
    seat.meet();
    std::thread watcher;
    if (seat.rank == late) {
      std::this_thread::sleep_for(500ms);
      const std::string text = text_of_metrics(true);
      EXPECT_GT(sum_of(text, "fccl_call_age_seconds", "peer=\"" + std::to_string(late) + "\""), 0.1) << text;
      std::this_thread::sleep_for(500ms);
    }
    EXPECT_EQ(try_collective({.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 10}, seat.rank, seat.ranks, comm),
              "");
    seat.meet();
    double waited = -1;
    ASSERT_TRUE(succeeded(fcclCommGetWaited(comm, late, &waited)));
    if (seat.rank != late)
      EXPECT_GT(waited, 0.5);
    else
      EXPECT_EQ(waited, 0);
    EXPECT_EQ(sum_of(text_of_metrics(true), "fccl_call_age_seconds", "peer="), 0);
    EXPECT_EQ(fcclCommGetWaited(comm, seat.ranks, &waited), fcclInvalidArgument);
    seat.meet();
  });
}

TEST_P(Metrics, tell_how_long_each_communicator_took_to_make) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    seat.meet();
    const std::string text = text_of_metrics(true);
    EXPECT_GT(sum_of(text, "fccl_init_seconds", "rank=\"" + std::to_string(seat.rank) + "\""), 0) << text;
    EXPECT_LT(sum_of(text, "fccl_init_seconds", ""), 30.0 * seat.ranks) << text;
    seat.meet();
  });
}

TEST_P(Metrics, have_no_kind_that_there_is_not) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    fcclCallMetrics_t metrics{};
    metrics.size = sizeof metrics;
    EXPECT_EQ(fcclCommGetCallMetrics(comm, fcclNumColls, 0, 0, &metrics), fcclInvalidArgument);
    EXPECT_EQ(fcclCommGetCallMetrics(comm, fcclCollReduce, -1, 0, &metrics), fcclInvalidArgument);
    EXPECT_EQ(fcclCommGetCallMetrics(comm, fcclCollReduce, 0, 99, &metrics), fcclInvalidArgument);
    metrics.size = 0;
    EXPECT_EQ(fcclCommGetCallMetrics(comm, fcclCollReduce, 0, 0, &metrics), fcclInvalidArgument);
    EXPECT_EQ(fcclMetricsPathName(99), nullptr);
    EXPECT_EQ(fcclMetricsLargestSize(-1), 0U);
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, Metrics, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
