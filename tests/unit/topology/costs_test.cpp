// Tests of costs as text: meaning, equality of values, and refused texts.
#include "topology/costs.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace fccl::core {
namespace {

constexpr const char* kText = "latency=30us,message=2.5us,wire=100Gbit/s,add=8GB/s,host=5GB/s";

TEST(Costs, are_read_in_the_units_that_they_are_written_in) {
  const auto costs = parse_costs(kText);
  ASSERT_TRUE(costs) << costs.error().message;
  EXPECT_DOUBLE_EQ(costs->constants.latency, 30e-6);
  EXPECT_DOUBLE_EQ(costs->constants.message, 2.5e-6);
  EXPECT_DOUBLE_EQ(costs->constants.wire_byte, 8e-11);
  EXPECT_DOUBLE_EQ(costs->constants.added_byte, 1.25e-10);
  EXPECT_DOUBLE_EQ(costs->constants.host_byte, 2e-10);
}

TEST(Costs, may_stand_in_any_order) {
  const auto costs = parse_costs("host=5GB/s,add=8GB/s,wire=100Gbit/s,message=2.5us,latency=30us");
  ASSERT_TRUE(costs) << costs.error().message;
  EXPECT_EQ(to_text(*costs), kText);
}

TEST(Costs, of_a_host_are_read_by_their_earlier_name_too) {
  const std::string others = "latency=30us,message=2.5us,wire=100Gbit/s,add=8GB/s,";
  const auto costs = parse_costs(others + "host=5GB/s"), by_earlier_name = parse_costs(others + "node=5GB/s");
  ASSERT_TRUE(costs) << costs.error().message;
  ASSERT_TRUE(by_earlier_name) << by_earlier_name.error().message;
  EXPECT_DOUBLE_EQ(costs->constants.host_byte, 2e-10);
  EXPECT_DOUBLE_EQ(by_earlier_name->constants.host_byte, 2e-10);
  EXPECT_FALSE(parse_costs(others + "node=5GB/s,host=5GB/s"));
}

TEST(Costs, of_six_digits_are_written_as_they_were_read) {
  for (const std::string text : {kText, "latency=0us,message=0us,wire=0.119654Gbit/s,add=1e-06GB/s,host=1e+09GB/s",
                                 "latency=4.31415us,message=0.333333us,wire=97.1Gbit/s,add=12.3457GB/s,host=6.66667GB/s"}) {
    const auto costs = parse_costs(text);
    ASSERT_TRUE(costs) << costs.error().message;
    EXPECT_EQ(to_text(*costs), text);
  }
}

TEST(Costs, of_many_digits_are_settled_once_they_were_text) {
  const CostConstants measured{1.23456789e-5, 9.87654321e-7, 8.1234567e-10, 1.0 / 3e9, 7e-11};
  const std::string text = to_text({measured});
  const auto costs = parse_costs(text);
  ASSERT_TRUE(costs) << costs.error().message;
  EXPECT_NEAR(costs->constants.wire_byte / measured.wire_byte, 1, 1e-5);
  EXPECT_EQ(to_text(*costs), text);
}

TEST(Costs, may_say_how_far_off_they_were_when_they_were_measured) {
  const std::string text = std::string(kText) + ",error=6.5%";
  const auto costs = parse_costs(text);
  ASSERT_TRUE(costs) << costs.error().message;
  EXPECT_EQ(costs->error_percent, 6.5);
  EXPECT_EQ(to_text(*costs), text);
  EXPECT_EQ(to_text({costs->constants}), kText);
  EXPECT_FALSE(parse_costs(kText)->error_percent);
}

struct Wrong {
  const char* text;
  const char* said;
};

TEST(Costs, that_are_wrong_are_refused_with_what_is_wrong) {
  for (const Wrong& wrong : {
           Wrong{"", "latency is missing"},
           Wrong{"latency=30us,message=2us,wire=1Gbit/s,add=8GB/s", "host is missing"},
           Wrong{"latency=30us,latency=30us", "latency stands twice"},
           Wrong{"latency=30us,", "end with a comma"},
           Wrong{"latency=30us,,message=2us", "\"\" in the costs"},
           Wrong{"delay=30us", "\"delay=30us\" in the costs is not latency"},
           Wrong{"latency", R"("latency" in the costs is not latency, message, wire, add, host or error with "=")"},
           Wrong{"latency=30", "\"latency=30\" is not a number from 0 to 1000000000 followed by us"},
           Wrong{"latency= 30us", "\"latency= 30us\" is not"},
           Wrong{"latency=-1us", "\"latency=-1us\" is not"},
           Wrong{"latency=nanus", "\"latency=nanus\" is not"},
           Wrong{"latency=infus", "\"latency=infus\" is not"},
           Wrong{"latency=1e999us", "\"latency=1e999us\" is not"},
           Wrong{"wire=1GB/s", "\"wire=1GB/s\" is not a number from 1e-06 to 1000000000 followed by Gbit/s"},
           Wrong{"host=0GB/s", "\"host=0GB/s\" is not"},
           Wrong{"error=5", "\"error=5\" is not a number from 0 to 1000000000 followed by %"},
           Wrong{"error=-1%", "\"error=-1%\" is not"},
           Wrong{"error=5%,error=5%", "error stands twice"},
           Wrong{"error=5%", "latency is missing"},
           Wrong{"host=\x01\xffGB/s", R"("host=??GB/s" is not)"},
       }) {
    const auto costs = parse_costs(wrong.text);
    ASSERT_FALSE(costs) << wrong.text;
    EXPECT_EQ(costs.error().code, fcclInvalidUsage);
    EXPECT_NE(costs.error().message.find(wrong.said), std::string::npos) << costs.error().message;
    EXPECT_NE(costs.error().message.find("latency=20us,message=1us"), std::string::npos) << costs.error().message;
  }
}

TEST(DefaultCosts, exist_for_the_providers_and_for_no_other) {
  for (const char* provider : {"efa", "verbs", "tcp"}) {
    const auto costs = default_costs(provider);
    ASSERT_TRUE(costs) << provider;
    EXPECT_TRUE(parse_costs(to_text({*costs}))) << to_text({*costs});
  }
  EXPECT_FALSE(default_costs("sockets"));
}

TEST(Costs, of_zero_below_zero_or_not_a_number_are_told_by_the_name_of_their_field) {
  const CostConstants good{.latency = 2e-5, .message = 1e-6, .wire_byte = 1e-9, .added_byte = 1e-10, .host_byte = 1e-10};
  EXPECT_EQ(fault_of(good), "");
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  for (const auto& [name, field] :
       {std::pair("latency", &CostConstants::latency), std::pair("message", &CostConstants::message),
        std::pair("wire_byte", &CostConstants::wire_byte), std::pair("added_byte", &CostConstants::added_byte),
        std::pair("host_byte", &CostConstants::host_byte)}) {
    CostConstants wrong = good;
    wrong.*field = 0;
    EXPECT_EQ(fault_of(wrong), name + std::string(" is missing (0 s)"));
    for (const double value : {-1e-6, nan, -nan, infinite, 1e30}) {
      wrong.*field = value;
      EXPECT_TRUE(fault_of(wrong).starts_with(name + std::string(" is "))) << value << fault_of(wrong);
    }
  }
}

TEST(DefaultCosts, follow_the_speed_of_the_nics) {
  for (const char* provider : {"efa", "verbs", "tcp"})
    EXPECT_DOUBLE_EQ(default_costs(provider, 200'000)->wire_byte * 2, default_costs(provider, 100'000)->wire_byte);
  EXPECT_EQ(to_text({*default_costs("efa", 100'000)}), to_text({*default_costs("efa")}));
}

}  // namespace
}  // namespace fccl::core
