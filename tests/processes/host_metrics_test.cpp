// Metrics between hosts: what went over the rails, and who was waited for.
#include <string>
#include <thread>

#include "processes/metrics_text.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

fcclRailMetrics_t rails() {
  fcclRailMetrics_t sum{};
  for (int rail = 0; rail < FCCL_METRICS_RAILS; ++rail) {
    fcclRailMetrics_t one{};
    one.size = sizeof one;
    EXPECT_TRUE(succeeded(fcclGetRailMetrics(rail, &one)));
    sum.bytes += one.bytes;
    sum.messages += one.messages;
    sum.retries += one.retries;
  }
  return sum;
}

class HostMetrics : public ::testing::Test {
 protected:
  static Launch launch() { return {.as = RanksAs::processes, .ranks = 2, .host_of = {0, 1}}; }
};

TEST_F(HostMetrics, count_the_bytes_that_each_rank_gives_to_its_rails) {
  run_ranks(launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const fcclRailMetrics_t before = rails();
    constexpr size_t kBytes = 1'000'000;
    EXPECT_EQ(
        try_collective({.collective = fcclCollAllGather, .dtype = fcclUint8, .count = kBytes}, seat.rank, seat.ranks, comm),
        "");
    const fcclRailMetrics_t after = rails();
    EXPECT_GE(after.bytes - before.bytes, kBytes);
    EXPECT_LT(after.bytes - before.bytes, 2 * kBytes);
    EXPECT_GT(after.messages, before.messages);
    fcclRailMetrics_t none{};
    none.size = sizeof none;
    EXPECT_EQ(fcclGetRailMetrics(FCCL_METRICS_RAILS, &none), fcclInvalidArgument);
    seat.meet();
  });
}

TEST_F(HostMetrics, name_a_late_rank_of_another_host_as_the_one_waited_for) {
  run_ranks(launch(), [](const Seat& seat) {
    const Comm comm(seat);
    seat.meet();
    if (seat.rank == 1) std::this_thread::sleep_for(2s);
    EXPECT_EQ(try_collective({.collective = fcclCollAllGather, .dtype = fcclUint8, .count = 10}, seat.rank, seat.ranks, comm),
              "");
    double waited = -1;
    ASSERT_TRUE(succeeded(fcclCommGetWaited(comm, 1 - seat.rank, &waited)));
    EXPECT_EQ(waited > 1, seat.rank == 0) << waited;
    seat.meet();
  });
}

TEST_F(HostMetrics, name_the_transport_its_provider_and_the_nic_of_each_rail) {
  run_ranks(launch(), [](const Seat& seat) {
    const std::string before = text_of_metrics(false);
    EXPECT_EQ(sum_of(before, "fccl_build_info", R"(transport="none",provider="none")"), 1) << before;
    const Comm comm(seat);
    EXPECT_EQ(try_collective({.collective = fcclCollAllGather, .dtype = fcclUint8, .count = 10}, seat.rank, seat.ranks, comm),
              "");
    const std::string text = text_of_metrics(false);
    EXPECT_EQ(sum_of(text, "fccl_build_info", R"(transport="libfccl_ofi.so",provider="tcp")"), 1) << text;
    EXPECT_GT(sum_of(text, "fccl_rail_bytes_total", "nic="), 0) << text;
    EXPECT_EQ(sum_of(text, "fccl_rail_bytes_total", R"(nic="")"), 0) << text;
    seat.meet();
  });
}

TEST_F(HostMetrics, count_the_failure_of_a_communicator_once_by_its_kind) {
  run_ranks(launch(), [](const Seat& seat) {
    Comm comm(seat);
    seat.meet();
    if (seat.rank == 1) {
      EXPECT_TRUE(succeeded(fcclCommAbort(comm.release())));
    } else {
      char own = 0;
      char all[2];
      for (int call = 0; call < 3; ++call) EXPECT_NE(fcclAllGather(&own, all, 1, fcclUint8, comm, nullptr), fcclSuccess);
      const std::string text = text_of_metrics(false);
      EXPECT_EQ(sum_of(text, "fccl_errors_total", "kind="), 1) << text;
      EXPECT_EQ(sum_of(text, "fccl_errors_total", R"(kind="aborted")"), 1) << text;
    }
    seat.meet();
  });
}

}  // namespace
}  // namespace fccl::core::testing
