// Hosts: where the ranks of a test take themselves to be; the parameter of the tests of communicators that span hosts.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "processes/ranks.h"
#include "processes/trial.h"

namespace fccl::testing {

struct OnHosts {
  const char* name;
  std::vector<int> host_of;

  int ranks() const { return static_cast<int>(host_of.size()); }
  Launch launch() const { return {.as = RanksAs::processes, .ranks = ranks(), .host_of = host_of}; }
};

inline void PrintTo(const OnHosts& hosts, std::ostream* out) { *out << hosts.name; }

inline std::string name_of_hosts(const ::testing::TestParamInfo<OnHosts>& info) { return info.param.name; }

inline const OnHosts kTwoAndTwo{"2_and_2_ranks", {0, 0, 1, 1}};
inline const OnHosts kThreeAndOne{"3_and_1_ranks", {0, 0, 0, 1}};
inline const OnHosts kInTurn{"2_and_2_ranks_in_turn", {0, 1, 0, 1}};

inline const std::vector<OnHosts>& every_placement() {
  static const std::vector<OnHosts> all{
      kTwoAndTwo, kThreeAndOne, kInTurn, {"2_and_1_and_1_ranks", {0, 0, 1, 2}}, {"5_hosts_of_1_rank", {0, 1, 2, 3, 4}}};
  return all;
}

}  // namespace fccl::testing
