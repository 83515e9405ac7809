// Tests of the text of metrics, with a separate reader of the format.
#include "metrics_server/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "metrics/process_page.h"
#include "unit/metrics_server/exposition.h"

namespace fccl::core::metrics {
namespace {

std::string own_text(uint64_t now_ms = 0) {
  const PageCopy own = PageCopy::own();
  return text_of({&own, 1}, now_ms);
}

class MetricsText : public ::testing::Test {
 protected:
  MetricsText() {
    place.show([](CommunicatorPart& part) {
      std::strcpy(part.name.data(), R"(a "name" of \ sorts)");
      part.rank = 2;
      part.ranks = 4;
    });
    CommunicatorPart& part = place.part();
    part.calls.called = 1U << fcclCollBroadcast;
    Calls& calls = part.calls.of[fcclCollBroadcast][5][2];
    calls.calls = 5;
    calls.bytes = 5000;
    calls.time(1000);
    calls.time(3000);
    calls.time(uint64_t{1} << 50);
    part.waited_us[3] = 1'500'000;
  }

  CommunicatorPlace place;
  const std::string pid = "pid=\"" + std::to_string(getpid()) + "\"";
  const std::string kind = pid + R"(,collective="Broadcast",path="ring",size="65536")";
  const std::string who = pid + R"(,communicator="a \"name\" of \\ sorts",place="0",rank="2")";
};

TEST_F(MetricsText, follows_the_format_and_has_what_was_counted) {
  const Exposition text = read(own_text());
  EXPECT_EQ(text.fault, "");
  EXPECT_EQ(text.samples.at("fccl_calls_total{" + kind + "}"), 5);
  EXPECT_EQ(text.samples.at("fccl_bytes_total{" + kind + "}"), 5000);
  EXPECT_EQ(text.samples.at("fccl_call_seconds_bucket{" + kind + R"(,le="1.024e-06"})"), 1);
  EXPECT_EQ(text.samples.at("fccl_call_seconds_bucket{" + kind + R"(,le="4.096e-06"})"), 2);
  EXPECT_EQ(text.samples.at("fccl_call_seconds_bucket{" + kind + R"(,le="8.589934592"})"), 2);
  EXPECT_EQ(text.samples.at("fccl_call_seconds_bucket{" + kind + R"(,le="+Inf"})"), 3);
  EXPECT_EQ(text.samples.at("fccl_call_seconds_count{" + kind + "}"), 3);
  EXPECT_EQ(text.samples.at("fccl_waited_seconds_total{" + who + R"(,peer="3"})"), 1.5);
}

TEST_F(MetricsText, tells_what_processors_have_copied_where_they_have) {
  const std::string name = "fccl_copied_bytes_total{" + kind + "}";
  EXPECT_FALSE(read(own_text()).samples.contains(name));
  place.part().calls.of[fcclCollBroadcast][5][2].add_copied(300);
  EXPECT_EQ(read(own_text()).samples.at(name), 300);
}

TEST_F(MetricsText, tells_the_age_of_a_call_in_flight_and_for_whom_it_waits) {
  Flight& flight = place.part().flights[1];
  flight.collective = fcclCollAllReduce;
  flight.since_ms = 1000;
  flight.awaited = 1;
  flight.is_shown = 1;
  const std::string name = "fccl_call_age_seconds{" + who + R"(,lane="1",collective="AllReduce",peer="1"})";
  EXPECT_EQ(read(own_text(3500)).samples.at(name), 2.5);
  flight.is_shown = 0;
  EXPECT_FALSE(read(own_text(3500)).samples.contains(name));
}

TEST_F(MetricsText, tells_what_went_over_each_rail) {
  RailPart& rail = page_of_process().rails[3];
  rail.bytes = 700;
  rail.messages = 7;
  rail.retries = 2;
  write_name(rail.nic, "eth3");
  const Exposition text = read(own_text());
  rail.messages = 0;
  const std::string labels = "{" + pid + R"(,rail="3",nic="eth3"})";
  EXPECT_EQ(text.samples.at("fccl_rail_bytes_total" + labels), 700);
  EXPECT_EQ(text.samples.at("fccl_rail_messages_total" + labels), 7);
  EXPECT_EQ(text.samples.at("fccl_rail_retries_total" + labels), 2);
}

TEST_F(MetricsText, tells_how_long_a_communicator_took_to_make_once_it_is_made) {
  const std::string name = "fccl_init_seconds{" + who + "}";
  EXPECT_FALSE(read(own_text()).samples.contains(name));
  place.part().init_us = 2'500'000;
  EXPECT_EQ(read(own_text()).samples.at(name), 2.5);
}

TEST_F(MetricsText, counts_every_kind_of_error_from_zero_on) {
  const std::string timeout = "fccl_errors_total{" + pid + R"(,kind="timeout"})";
  const double before = read(own_text()).samples.at(timeout);
  count_error(fcclTimeout, "rank 1 is late");
  count_error(fcclSuccess, "");
  const Exposition text = read(own_text());
  EXPECT_EQ(text.samples.at(timeout), before + 1);
  EXPECT_TRUE(text.samples.contains("fccl_errors_total{" + pid + R"(,kind="remote"})"));
  EXPECT_FALSE(text.samples.contains("fccl_errors_total{" + pid + R"(,kind="in_progress"})"));
}

TEST_F(MetricsText, names_the_version_and_what_goes_between_hosts_once_something_does) {
  const std::string version = fmt::format(R"(version="{}.{}.{}")", FCCL_MAJOR, FCCL_MINOR, FCCL_PATCH);
  const std::string name = "fccl_build_info{" + pid + "," + version;
  EXPECT_EQ(read(own_text()).samples.at(name + R"(,transport="none",provider="none"})"), 1);
  const std::vector<std::string> nics{"eth0", std::string(40, 'x')};
  show_network({"libmine.so", "tcp", nics});
  show_network({"libother.so", "efa", std::vector<std::string>{"eth7"}});
  EXPECT_EQ(read(own_text()).samples.at(name + R"(,transport="libmine.so",provider="tcp"})"), 1);
  EXPECT_EQ(text_of(page_of_process().rails[0].nic), "eth0");
  EXPECT_EQ(text_of(page_of_process().rails[1].nic), std::string(31, 'x'));
}

TEST_F(MetricsText, survives_a_page_that_makes_no_sense) {
  CommunicatorPart& part = place.part();
  part.flights[0].collective = ~uint64_t{0};
  part.flights[0].since_ms = ~uint64_t{0};
  part.flights[0].awaited = -77;
  part.flights[0].is_shown = 3;
  part.calls.called = ~uint64_t{0};
  place.show([](CommunicatorPart& mine) {
    mine.ranks = 1 << 30;
    mine.places = -1;
    std::memset(mine.name.data(), '\x1b', mine.name.size());
    mine.name[1] = '\n';
    mine.name[2] = '\xff';
  });
  const std::string text = own_text(1);
  EXPECT_EQ(read(text).fault, "");
  EXPECT_EQ(text.find_first_of("\x1b\xff"), std::string::npos);
  EXPECT_TRUE(pages_from(getpid()));
}

TEST(ReaderOfTheFormat, finds_what_breaks_its_rules) {
  EXPECT_NE(read("fccl_x{} 1\n").fault, "");
  EXPECT_NE(read("# HELP a b\n# TYPE a counter\nb{} 1\n").fault, "");
  EXPECT_NE(read("# HELP a b\n# TYPE a counter\na{} 1\na{} 1\n").fault, "");
  EXPECT_NE(read("# HELP a b\n# TYPE a counter\na{x=\"\"\"} 1\n").fault, "");
  EXPECT_NE(read("# HELP a b\n# TYPE a counter\na{} 1").fault, "");
  EXPECT_EQ(read("# HELP a b\n# TYPE a counter\na{x=\"1\"} 1\n").fault, "");
}

}  // namespace
}  // namespace fccl::core::metrics
