// The way of a call to its bytes, as the page of the architecture lists it: no function on it that only forwards.
#include <vector>

#include "frames/page.h"
#include "frames/stacks.h"
#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

TEST(Frames, of_an_all_gather_on_one_host_are_those_of_the_page) {
  const Setting ring("FCCL_CROSS_MEMORY_ATTACH", "off");
  run_ranks({.as = RanksAs::processes, .ranks = 2}, [](const Seat& seat) {
    const Comm comm(seat);
    const std::vector<float> mine(16384, static_cast<float>(seat.rank));
    std::vector<float> all(2 * mine.size(), -1);
    Recording recording;
    ASSERT_TRUE(succeeded(fcclAllGather(mine.data(), all.data(), mine.size(), fcclFloat32, comm, nullptr)));
    if (seat.rank == 0) expect_listed(recording.below("fcclAllGather"), {"copy_bytes"}, 7);
    EXPECT_EQ(all.back(), 1);
  });
}

TEST(Frames, of_a_send_of_a_group_on_one_host_are_those_of_the_page) {
  run_ranks({.as = RanksAs::processes, .ranks = 2}, [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t count : {4, 256}) {  // beside the notice, and in a slot
      std::vector<float> values(count, static_cast<float>(seat.rank + 1));
      Recording recording;
      ASSERT_TRUE(succeeded(fcclGroupStart()));
      ASSERT_TRUE(succeeded(seat.rank == 0 ? fcclSend(values.data(), count, fcclFloat32, 1, comm, nullptr)
                                           : fcclRecv(values.data(), count, fcclFloat32, 0, comm, nullptr)));
      ASSERT_TRUE(succeeded(fcclGroupEnd()));
      if (seat.rank == 0) expect_listed(recording.below("fcclGroupEnd"), {"HostPair::post_eager", "copy_bytes"}, 8);
      EXPECT_EQ(values.back(), 1);
    }
  });
}

TEST(Frames, of_a_reduce_scatter_between_hosts_into_a_stage_are_those_of_the_page) {
  run_ranks({.as = RanksAs::processes, .ranks = 2, .host_of = {0, 1}}, [](const Seat& seat) {
    const Comm comm(seat);
    const std::vector<float> mine(131072, static_cast<float>(seat.rank + 1));
    std::vector<float> sum(mine.size() / 2, -1);
    Recording recording;
    ASSERT_TRUE(succeeded(fcclReduceScatter(mine.data(), sum.data(), sum.size(), fcclFloat32, fcclSum, comm, nullptr)));
    if (seat.rank == 0) expect_listed(recording.below("fcclReduceScatter"), {"PlanExecutor::fill_stage", "copy_bytes"}, 12);
    EXPECT_EQ(sum.back(), 3);
  });
}

}  // namespace
}  // namespace fccl::core::testing
