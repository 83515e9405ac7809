// Tests of fccl-info top: what it tells of a job, and of pages that make no sense.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "metrics/process_page.h"
#include "os/clock.h"
#include "tools/ended.h"

namespace fccl::core::testing {
namespace {

Ended top_of(int process) { return run_info("top " + std::to_string(process)); }

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
  EXPECT_NE(ended.text.find("process " + std::to_string(getpid()) + "\n"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("rank 1 of 4 of communicator layers: 12 calls done; in AllGather of 4000 bytes for 60."),
            std::string::npos)
      << ended.text;
  EXPECT_NE(ended.text.find("s, waits for rank 3\n"), std::string::npos) << ended.text;
}

TEST_F(Top, says_of_a_rank_in_no_call_that_it_waits_in_none) {
  const Ended ended = top_of(getpid());
  EXPECT_NE(ended.text.find("rank 1 of 4 of communicator layers: 0 calls done; waits in no call\n"), std::string::npos)
      << ended.text;
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

TEST(TopOfNothing, says_why_there_is_nothing) {
  const Ended without = top_of(getpid());
  EXPECT_EQ(without.status, 1);
  EXPECT_NE(without.text.find("it has no communicator of FCCL now"), std::string::npos) << without.text;
  EXPECT_EQ(top_of(1 << 30).status, 1);
  const Ended wrong = run_info("top 12x");
  EXPECT_NE(wrong.status, 0);
  EXPECT_NE(wrong.text.find("'12x' is not an id of a process"), std::string::npos) << wrong.text;
}

}  // namespace
}  // namespace fccl::core::testing
