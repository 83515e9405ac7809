// Tests of what an error says of the calls of other ranks.
#include "health/known_calls.h"

#include "health/call_numbers.h"
#include "unit/health/ranks_of_one_host.h"

namespace fccl::core {
namespace {

class KnownCallsTest : public RanksOfOneHost {
 protected:
  void record(int rank, LaneId lane, uint64_t number, fcclColl_t collective) {
    segment->board(rank, lane).boxes[0].record.write({number, {collective, fcclFloat32, ReduceOp::sum, -1, 100}, {}});
  }
};

TEST_F(KnownCallsTest, names_the_communicator_if_it_has_a_name) {
  const KnownCalls named("tower", control->peers);
  EXPECT_EQ(named.describe(task), "AllGather of 4096 int8 (call 0) of communicator tower");
  EXPECT_EQ(control->calls.describe(task), "AllGather of 4096 int8 (call 0)");
}

TEST_F(KnownCallsTest, knows_the_last_call_of_a_rank_on_any_lane) {
  EXPECT_EQ(control->calls.describe_last_call_of(1), "none");
  record(1, kGatherLane, kFirstNumber + 1, fcclCollAllGather);
  record(1, kPairLane, kFirstNumber + 2, fcclCollAllReduce);
  EXPECT_EQ(control->calls.describe_last_call_of(1), "AllReduce(sum) of 100 float32 (call 2)");
}

TEST_F(KnownCallsTest, finds_a_call_of_the_same_number_on_the_other_lane_only) {
  record(1, kGatherLane, kFirstNumber, fcclCollAllGather);
  EXPECT_FALSE(control->calls.is_on_another_lane(task, 1));
  record(2, kPairLane, kFirstNumber, fcclCollAllReduce);
  EXPECT_TRUE(control->calls.is_on_another_lane(task, 2));
}

TEST_F(KnownCallsTest, shows_both_calls_that_differ) {
  record(1, kPairLane, kFirstNumber, fcclCollAllReduce);
  const Error error = control->calls.mismatch(task, 1);
  EXPECT_EQ(error.code, fcclInvalidUsage);
  EXPECT_NE(error.message.find("rank 0 called AllGather of 4096 int8 (call 0), rank 1 (pid "), std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("called AllReduce(sum) of 100 float32 (call 0). All ranks must"), std::string::npos)
      << error.message;
}

}  // namespace
}  // namespace fccl::core
