// Settings of what goes between hosts that make no sense: refused in init on one host, too, in the same words.
#include <string>

#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

struct Nonsense {
  const char* name;
  const char* variable;
  std::string value;
  const char* said;  // from its beginning
};

void PrintTo(const Nonsense& nonsense, std::ostream* out) { *out << nonsense.name; }

const Nonsense kNonsense[] = {
    {"a_list_without_a_nic", "FCCL_NICS", ",,", "FCCL_NICS=,, names no NIC; `fccl-info topology` lists those of this host"},
    {"a_nic_with_a_space", "FCCL_NICS", "eth0, eth1",
     "FCCL_NICS=eth0, eth1 has the name \" eth1\", which no NIC has: give names without spaces, with commas between"},
    {"no_plan", "FCCL_ALGORITHM", "pairwsie", "FCCL_ALGORITHM=pairwsie is not a plan between hosts; there are bruck, chain"},
    {"no_costs", "FCCL_COSTS", "cheap", "FCCL_COSTS=cheap are no costs: \"cheap\" in the costs is not latency"},
    {"costs_without_end", "FCCL_COSTS", std::string(3000, '1'), "FCCL_COSTS=1111"},
    {"a_plan_without_end", "FCCL_ALGORITHM", std::string(3000, 'a'), "FCCL_ALGORITHM=aaaa"},
};

class InitWith : public ::testing::TestWithParam<Nonsense> {
 protected:
  static void expect_refused(const OnHosts& hosts) {
    run_ranks(hosts.launch(), [](const Seat& seat) {
      const fcclUniqueId id = agree_on_id(seat);
      const Setting setting(GetParam().variable, GetParam().value);
      expect_no_communicator(seat, id, fcclInvalidUsage, {std::string("fcclCommInitRankConfig: ") + GetParam().said});
    });
  }
};

TEST_P(InitWith, is_refused_by_a_single_rank) { expect_refused({"1_rank", {0}}); }

TEST_P(InitWith, is_refused_by_the_ranks_of_one_host) { expect_refused({"2_ranks", {0, 0}}); }

TEST_P(InitWith, is_refused_by_the_ranks_of_two_hosts_in_the_same_words) { expect_refused({"1_and_1_rank", {0, 1}}); }

INSTANTIATE_TEST_SUITE_P(Nonsense, InitWith, ::testing::ValuesIn(kNonsense),
                         [](const auto& nonsense) { return nonsense.param.name; });

TEST(InitWithNonsense, of_one_rank_is_told_to_the_others_by_name) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const Setting algorithm("FCCL_ALGORITHM", seat.rank == 1 ? "pairwsie" : "");
    expect_no_communicator(seat, id, fcclInvalidUsage,
                           {"FCCL_ALGORITHM=pairwsie", seat.rank == 1 ? "is not a plan" : name_of_rank(1)});
  });
}

}  // namespace
}  // namespace fccl::core::testing
