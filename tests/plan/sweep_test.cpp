// Every algorithm of the catalog holds for every number of members.
#include <gtest/gtest.h>

#include "base/call.h"
#include "plan/check.h"
#include "plan/every_algorithm.h"
#include "plan/ring.h"

namespace fccl::core::plan {
namespace {

class EveryAlgorithm : public ::testing::TestWithParam<Algorithm<Project>> {};

// Expects the algorithm to hold for every number of members, and for every root that makes another case.
void expect_to_hold(const Algorithm<Project>& algorithm, int window) {
  std::vector<int> sizes{64};
  for (int members = 1; members <= 33; ++members) sizes.push_back(members);
  for (int members : sizes)
    for (int root : {0, members / 2, members - 1}) {
      const Group group{members, root};
      EXPECT_EQ(fault_of({algorithm.collective, algorithm.cut, group, window}, steps_of_all(algorithm.tell, group)), "")
          << members << " members, root " << root;
      if (!is_rooted(algorithm.collective)) break;
    }
}

TEST_P(EveryAlgorithm, holds_for_1_to_33_and_64_members_with_10_slices_in_8_slots) { expect_to_hold(GetParam(), 8); }

TEST_P(EveryAlgorithm, holds_for_1_to_33_and_64_members_with_one_slot) { expect_to_hold(GetParam(), 1); }

TEST(Ring, holds_for_1_to_33_members) {
  for (int members = 1; members <= 33; ++members)
    EXPECT_EQ(fault_of({fcclCollAllGather, Cut::per_member, {members}}, steps_of_all(ring_all_gather<Project>, {members})), "");
}

INSTANTIATE_TEST_SUITE_P(Plan, EveryAlgorithm, ::testing::ValuesIn(kCatalog<Project>), name_of_case);

}  // namespace
}  // namespace fccl::core::plan
