// The bootstrap of thousands of ranks over real sockets in one process: what it costs, and whom an error names.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <csignal>

#include "bootstrap/messages.h"
#include "scale/many_descriptors.h"
#include "scale/tapped_sends.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core::testing {
namespace {

constexpr int kRanksPerHost = 8;
constexpr auto kPatience = 120s;
// A collector says 8 rosters to its ranks and 16 to the collectors below it, and passes hellos on in batches. There are more of
// these the longer the ranks take to come, and their waits on a busy machine are long.
constexpr uint64_t kMostOfBusiest = 128;

JoinRequest request_on_host(const UniqueId& id, int rank, int ranks) {
  JoinRequest request = request_of(id, rank, ranks);
  request.host_override = "scale-" + std::to_string(rank / kRanksPerHost);
  return request;
}

struct InitCost {
  uint64_t messages = 0;
  uint64_t of_busiest = 0;        // the most of one thread, without places
  uint64_t places = 0;            // of the root
  uint64_t bytes_of_busiest = 0;  // the most of one thread
  size_t roster_bytes = 0;
};

// All ranks join, compare their rosters, and leave.
InitCost cost_of(int ranks) {
  InitCost cost;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  forget_sends();
  std::atomic<int> joined = 0;
  std::atomic<size_t> roster_bytes = 0;
  std::barrier all_here(ranks);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        Result<Joined> result = join(request_on_host(id, rank, ranks), Deadline::after(kPatience));
        if (result && std::cmp_equal(result->members.size(), ranks) && result->members[rank].pid == ::getpid() &&
            result->members[rank].host == rank / kRanksPerHost)
          ++joined;
        if (result && rank == 0) roster_bytes = encode(Roster{result->members}).size();
        if (result) result->members = {};
        all_here.arrive_and_wait();
        if (result) result->presence.leave();
      });
  }
  EXPECT_EQ(joined, ranks);
  // The threads of the root and of collectors end a moment after the last rank has left.
  std::this_thread::sleep_for(300ms);
  cost.roster_bytes = roster_bytes;
  for (const auto& [thread, sends] : sends_of_threads()) {
    cost.messages += sends.messages;
    cost.of_busiest = std::max(cost.of_busiest, sends.messages - sends.places);
    cost.places = std::max(cost.places, sends.places);
    cost.bytes_of_busiest = std::max(cost.bytes_of_busiest, sends.bytes);
  }
  std::printf("%d ranks: %zu messages, %zu and %zu places of the busiest thread, which sent %zu bytes; roster %zu bytes\n",
              ranks, cost.messages, cost.of_busiest, cost.places, cost.bytes_of_busiest, cost.roster_bytes);
  return cost;
}

double slope(double few, double many, double times) { return std::log(many / few) / std::log(times); }

// Compares the init of so many ranks with that of 256.
void expect_growth(int ranks) {
  if (!has_descriptors(ranks)) GTEST_SKIP() << "this process may have too few descriptors";
  const InitCost few = cost_of(256), many = cost_of(ranks);
  for (const auto& [cost, number] : {std::pair(few, 256), std::pair(many, ranks)}) {
    EXPECT_LE(cost.messages, static_cast<uint64_t>(number) * 6);
    // The id names the root alone, so each host beyond the root's own children asks it once.
    EXPECT_LE(cost.places, static_cast<uint64_t>(number / kRanksPerHost));
  }
  const double times = ranks / 256.0;
  EXPECT_LE(slope(static_cast<double>(few.messages), static_cast<double>(many.messages), times), 1.1);
  EXPECT_LE(many.of_busiest, kMostOfBusiest);
  // Beside a short roster, handshakes and hellos count.
  EXPECT_LE(many.bytes_of_busiest, 20 * many.roster_bytes);
}

TEST(Init, of_1024_ranks_costs_each_process_hardly_more_than_that_of_256) { expect_growth(1024); }

TEST(LongInit, of_4096_ranks_costs_each_process_hardly_more_than_that_of_256) { expect_growth(4096); }

// Other work on the machine may spoil one run, and not every one.
TEST(LongInit, lets_the_messages_of_a_process_grow_with_the_ranks_to_the_power_of_0_3_at_most) {
  if (!has_descriptors(4096)) GTEST_SKIP() << "this process may have too few descriptors";
  double least = 1;
  for (int attempt = 0; attempt < 3 && least > 0.3; ++attempt)
    least =
        std::min(least, slope(static_cast<double>(cost_of(256).of_busiest), static_cast<double>(cost_of(4096).of_busiest), 16));
  EXPECT_LE(least, 0.3);
}

std::vector<JoinRequest> requests_on_hosts(const UniqueId& id, int begin, int end, int ranks) {
  std::vector<JoinRequest> requests;
  for (int rank = begin; rank < end; ++rank) requests.push_back(request_on_host(id, rank, ranks));
  return requests;
}

TEST(Init, of_512_ranks_with_a_setting_that_differs_names_it_on_all) {
  if (!has_descriptors(512)) GTEST_SKIP() << "this process may have too few descriptors";
  std::vector<JoinRequest> requests = requests_on_hosts(*open_bootstrap(on_interface("lo")), 0, 512, 512);
  requests[500].agreement = "protocol=1\nlanes=3";
  expect_failures(join_all(requests, kPatience), fcclInvalidUsage, {"\"lanes=2\"", "\"lanes=3\"", "rank 500 (pid"});
}

// The last host is a process of its own, and below the root's children in the tree.
TEST(Init, of_512_ranks_in_which_a_host_dies_names_a_rank_of_it_on_all) {
  if (!kForksMayStartThreads) GTEST_SKIP() << "a child serves the id";
  if (!has_descriptors(512)) GTEST_SKIP() << "this process may have too few descriptors";
  ServedElsewhere served;
  ASSERT_NO_FATAL_FAILURE(served.begin());
  const UniqueId id = *from_c(served.id);
  const pid_t host = ::fork();
  if (host == 0) {
    std::this_thread::sleep_for(500ms);
    (void)join_all(requests_on_hosts(id, 512 - kRanksPerHost, 512, 512), kPatience);
    ::_exit(0);
  }
  std::jthread killer([&] {
    std::this_thread::sleep_for(2s);
    ::kill(host, SIGKILL);
    ::waitpid(host, nullptr, 0);
  });
  // Rank 0 does not come.
  expect_failures(join_all(requests_on_hosts(id, 1, 512 - kRanksPerHost, 512), kPatience), fcclRemoteError,
                  {"(pid " + std::to_string(host), "left while joining"});
  ::kill(served.child, SIGKILL);
  ::waitpid(served.child, nullptr, 0);
}

}  // namespace
}  // namespace fccl::core::testing
