// Tests of fccl-info top: what it tells of a job, and of pages that make no sense.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <stop_token>
#include <string>
#include <thread>

#include "metrics/process_page.h"
#include "os/clock.h"
#include "tools/ended.h"

namespace fccl::core::testing {
namespace {

Ended top_of(int process, const std::string& options = "") {
  return run_info("top " + std::to_string(process) + " " + options);
}

std::string own_process() { return "process " + std::to_string(getpid()); }

class Top : public ::testing::Test {
 protected:
  Top() {
    place.show([](metrics::CommunicatorPart& part) {
      std::strcpy(part.name.data(), "layers");
      part.rank = 1;
      part.ranks = 4;
    });
  }
  metrics::CommunicatorPlace place;
};

TEST_F(Top, says_who_waits_for_whom_and_since_when) {
  metrics::CallTable& calls = place.part().calls;
  calls.called = 1U << fcclCollAllGather;
  calls.of[fcclCollAllGather][1][0].calls = 12;
  metrics::Flight& flight = place.part().flights[0];
  flight.collective = fcclCollAllGather;
  flight.bytes = 4000;
  flight.since_ms = to_ms(Clock::now()) - 60'000;
  flight.awaited = 3;
  flight.is_shown = 1;
  const Ended ended = top_of(getpid());
  EXPECT_EQ(ended.status, 0);
  EXPECT_TRUE(ended.text.starts_with("job of " + own_process() +
                                     ": 1 process on this host\n"
                                     "  communicator layers: 1 of 4 ranks\n"
                                     "    rank 1, " +
                                     own_process() + ": 12 calls; in AllGather of 4000 bytes for 60."))
      << ended.text;
  EXPECT_TRUE(
      ended.text.ends_with("s, waits for rank 3\n"
                           "    -> 1 call waits for rank 3, which is on another host or has ended\n"))
      << ended.text;
}

TEST_F(Top, says_of_a_rank_in_no_call_that_it_waits_in_none) {
  const Ended ended = top_of(getpid());
  EXPECT_NE(ended.text.find("    rank 1, " + own_process() + ": 0 calls; waits in no call\n"), std::string::npos) << ended.text;
}

TEST_F(Top, names_a_rank_of_this_host_that_others_wait_for_and_that_waits_for_nobody) {
  metrics::CommunicatorPlace late;
  late.show([](metrics::CommunicatorPart& part) {
    std::strcpy(part.name.data(), "layers");
    part.rank = 3;
    part.ranks = 4;
  });
  for (metrics::Flight& flight : place.part().flights) {
    flight.awaited = 3;
    flight.is_shown = 1;
  }
  const Ended ended = top_of(getpid());
  EXPECT_NE(ended.text.find("  communicator layers: 2 of 4 ranks\n"), std::string::npos) << ended.text;
  const std::string told = "    -> 3 calls wait for rank 3, which waits in no call: look at " + own_process() + "\n";
  EXPECT_NE(ended.text.find(told), std::string::npos) << ended.text;
}

TEST_F(Top, says_how_fast_a_rank_is_between_two_looks) {
  metrics::CallTable& calls = place.part().calls;
  calls.called = 1U << fcclCollAllGather;
  metrics::Calls& row = calls.of[fcclCollAllGather][1][0];
  std::jthread works([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
      metrics::raise(row.calls, 1);
      metrics::raise(row.bytes, 100'000'000);
    }
  });
  const Ended ended = top_of(getpid(), "--once --interval 0.3");
  EXPECT_EQ(ended.status, 0);
  double rate = 0, gigabytes = 0;
  const size_t at = ended.text.find(" calls, ");
  ASSERT_NE(at, std::string::npos) << ended.text;
  ASSERT_EQ(std::sscanf(ended.text.c_str() + at, " calls, %lf calls/s, %lf GB/s", &rate, &gigabytes), 2) << ended.text;
  EXPECT_GT(rate, 0);
  EXPECT_NEAR(gigabytes, 0.1 * rate, 0.01 * rate + 0.1);
}

TEST_F(Top, lists_all_jobs_of_this_host) {
  const Ended ended = run_info("top");
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("job of " + own_process() + ": 1 process on this host\n"), std::string::npos) << ended.text;
}

TEST_F(Top, looks_again_and_again_on_a_terminal_unless_it_is_told_otherwise) {
  const std::string process = std::to_string(getpid());
  const auto on_terminal = [&](const std::string& words) {
    return run_line("timeout 10 script -qec 'timeout 0.9 " FCCL_TEST_INFO " " + words + "' /dev/null < /dev/null");
  };
  const std::string again = on_terminal("top " + process + " --interval 0.2").text;
  EXPECT_NE(again.find("fccl-info top, every 0.2 s; Ctrl-C ends it"), again.rfind("fccl-info top, every 0.2 s")) << again;
  EXPECT_EQ(on_terminal("top " + process + " --once").text.find("\x1b["), std::string::npos);
}

TEST_F(Top, prints_no_letter_that_a_terminal_might_obey) {
  place.show([](metrics::CommunicatorPart& part) { std::memset(part.name.data(), '\x1b', part.name.size()); });
  for (metrics::Flight& flight : place.part().flights) {
    flight.collective = ~uint64_t{0};
    flight.since_ms = ~uint64_t{0};
    flight.awaited = int64_t{1} << 62;
    flight.is_shown = 1;
  }
  const Ended ended = top_of(getpid());
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text.find('\x1b'), std::string::npos);
  EXPECT_NE(ended.text.find("in ? of 0 bytes for 0.0 s"), std::string::npos) << ended.text;
}

TEST(TopOfNothing, names_a_process_of_another_version_of_fccl) {
  const int page = memfd_create(metrics::kMemoryName, MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(page, 8), 0);
  const Ended ended = run_info("top");
  EXPECT_EQ(ended.status, 0);
  const std::string told = "cannot look at " + own_process() + ": its metrics are those of another version of FCCL\n";
  EXPECT_NE(ended.text.find(told), std::string::npos) << ended.text;
  close(page);
}

TEST(TopOfNothing, says_why_there_is_nothing) {
  const Ended without = top_of(getpid());
  EXPECT_EQ(without.status, 1);
  EXPECT_NE(without.text.find("it has no communicator of FCCL now"), std::string::npos) << without.text;
  EXPECT_EQ(top_of(1 << 30).status, 1);
  EXPECT_NE(top_of(1 << 30).text.find("cannot look at process 1073741824: there is no such process"), std::string::npos);
}

}  // namespace
}  // namespace fccl::core::testing
