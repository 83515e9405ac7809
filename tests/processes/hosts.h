// Hosts: where the ranks of a test take themselves to be; the parameter of the tests of communicators that span hosts.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "processes/ranks.h"
#include "processes/trial.h"

namespace fccl::core::testing {

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
inline const OnHosts kOneAndTwoAndOne{"1_and_2_and_1_ranks", {0, 1, 1, 2}};
inline const OnHosts kTwoAndOneAndOne{"2_and_1_and_1_ranks", {0, 0, 1, 2}};
// So many hosts tell each other of calls by dissemination, if a message costs as much as FCCL_COSTS=kDearMessages says.
inline const OnHosts kFiveHosts{"2_and_4_of_1_ranks", {0, 0, 1, 2, 3, 4}};
inline const OnHosts kFourHosts{"4_of_1_rank", {0, 1, 2, 3}};
inline const OnHosts kSixHosts{"6_of_1_rank", {0, 1, 2, 3, 4, 5}};
inline constexpr const char* kDearMessages = "latency=10us,message=30us,wire=10Gbit/s,add=8GB/s,host=5GB/s";

inline constexpr double kSecond = 1000 * kSlowdown;

inline std::string name_of_rank(int rank) { return "rank " + std::to_string(rank) + " (pid"; }

inline fcclResult_t reduce(fcclComm_t comm, size_t count, fcclStream_t stream = nullptr) {
  static std::vector<float> values;
  values.assign(std::max<size_t>(count, 1), 1);
  return fcclAllReduce(values.data(), values.data(), count, fcclFloat32, fcclSum, comm, stream);
}

inline fcclResult_t reduce_until_failure(fcclComm_t comm, size_t count) {
  fcclResult_t result = fcclSuccess;
  while (result == fcclSuccess) result = reduce(comm, count);
  return result;
}

// The first failure stays, and the text names one of these ranks.
inline void expect_failure(fcclComm_t comm, fcclResult_t result, fcclResult_t code, const std::vector<int>& named) {
  EXPECT_EQ(result, code);
  const std::string text = fcclGetLastError(comm);
  EXPECT_TRUE(std::ranges::any_of(named, [&](int rank) { return text.find(name_of_rank(rank)) != std::string::npos; })) << text;
  EXPECT_EQ(fcclBarrier(comm, nullptr), code);
  EXPECT_EQ(fcclGetLastError(comm), text);
}

// Polls fcclCommGetAsyncError until it returns an error, or until `limit` ms after `since`, which is 0 until that moment comes.
inline fcclResult_t await_failure(fcclComm_t comm, const std::atomic<int64_t>& since, double limit) {
  fcclResult_t state = fcclSuccess;
  while (state == fcclSuccess && (since == 0 || ms_since(since) < limit)) {
    EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return state;
}

// Ranks whose creation fails, and the words in what each of them says.
inline void expect_no_communicator(const Seat& seat, const fcclUniqueId& id, fcclResult_t code,
                                   const std::vector<std::string>& words) {
  fcclConfig_t config = config_of_tests();
  config.initTimeoutMs = 30'000 * kSlowdown;
  fcclComm_t comm = nullptr;
  const int64_t begin = now_ns();
  EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), code);
  EXPECT_TRUE(in_time(begin, 3000));
  EXPECT_EQ(comm, nullptr);
  const std::string text = fcclGetLastError(nullptr);
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  seat.meet();
}

}  // namespace fccl::core::testing
