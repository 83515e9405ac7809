// Tests of settings: allowed values, and the errors for others.
#include "settings/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// Reads the settings with one variable set.
Result<Settings> read_with(const char* variable, const char* value) {
  setenv(variable, value, 1);
  auto settings = read_settings();
  unsetenv(variable);
  return settings;
}

void expect_refused(const char* variable, const char* value) {
  const auto settings = read_with(variable, value);
  ASSERT_FALSE(settings) << variable << "=" << value;
  EXPECT_EQ(settings.error().code, fcclInvalidUsage);
  EXPECT_NE(settings.error().message.find(std::string(variable) + "=" + value), std::string::npos) << settings.error().message;
}

TEST(Settings, have_defaults) {
  const auto settings = read_settings();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->timeout, 600s);
  EXPECT_EQ(settings->mailbox_bytes, 4096U);
  EXPECT_EQ(settings->slot_bytes, 262144U);
}

TEST(Settings, that_are_empty_are_not_set) { EXPECT_EQ(read_with("FCCL_TIMEOUT", "")->timeout, 600s); }

TEST(Settings, take_seconds_with_a_fraction) {
  EXPECT_EQ(read_with("FCCL_TIMEOUT", "1.5")->timeout, 1500ms);
  EXPECT_EQ(read_with("FCCL_INIT_TIMEOUT", "0.25")->init_timeout, 250ms);
}

TEST(Settings, refuse_what_is_no_time) {
  for (const char* value : {"soon", "0", "-1", "1s", "nan", "1e9"}) expect_refused("FCCL_TIMEOUT", value);
}

TEST(Settings, take_sizes_that_are_multiples_of_64) {
  EXPECT_EQ(read_with("FCCL_MAILBOX_BYTES", "128")->mailbox_bytes, 128U);
  EXPECT_EQ(read_with("FCCL_SLOT_BYTES", "64")->slot_bytes, 64U);
}

TEST(Settings, refuse_what_is_no_size) {
  for (const char* value : {"0", "63", "100", "4k", "-64", "99999999999999999999"}) expect_refused("FCCL_SLOT_BYTES", value);
  expect_refused("FCCL_MAILBOX_BYTES", "131072");
}

TEST(Settings, switch_cross_memory_attach_on_and_off) {
  EXPECT_EQ(read_settings()->cross_memory_attach, "auto");
  EXPECT_EQ(read_with("FCCL_CROSS_MEMORY_ATTACH", "on")->cross_memory_attach, "on");
  EXPECT_EQ(read_with("FCCL_CROSS_MEMORY_ATTACH", "off")->cross_memory_attach, "off");
  expect_refused("FCCL_CROSS_MEMORY_ATTACH", "maybe");
}

TEST(Settings, choose_how_calls_on_cuda_memory_run) {
  EXPECT_EQ(read_settings()->cuda_path, "auto");
  EXPECT_EQ(read_with("FCCL_CUDA_PATH", "blocking")->cuda_path, "blocking");
  expect_refused("FCCL_CUDA_PATH", "ring");
  EXPECT_EQ(read_with("FCCL_CUDA_BUFFER", "8192")->cuda_buffer_bytes, 8192U);
  expect_refused("FCCL_CUDA_BUFFER", "5000");
}

TEST(Settings, refuse_what_is_no_number_of_entries) {
  EXPECT_EQ(read_with("FCCL_CUDA_QUEUE", "32")->cuda_queue_entries, 32U);
  for (const char* value : {"31", "1001", "-64", "many"}) expect_refused("FCCL_CUDA_QUEUE", value);
}

TEST(Settings, refuse_what_is_no_number_of_blocks) {
  EXPECT_EQ(read_settings()->cuda_blocks, 8U);
  EXPECT_EQ(read_with("FCCL_CUDA_SMS", "1")->cuda_blocks, 1U);
  for (const char* value : {"0", "1025", "all"}) expect_refused("FCCL_CUDA_SMS", value);
}

TEST(Settings, refuse_a_level_that_the_log_does_not_have) { expect_refused("FCCL_LOG", "loud"); }

TEST(Settings, take_the_level_of_the_log_from_nccl_where_there_is_no_other) {
  for (const char* value : {"INFO", "info", "TRACE"}) EXPECT_EQ(read_with("NCCL_DEBUG", value)->log_level, "info") << value;
  for (const char* value : {"WARN", "VERSION", "", "loud"})
    EXPECT_EQ(read_with("NCCL_DEBUG", value)->log_level, "warn") << value;
}

TEST(Settings, keep_their_own_level_of_the_log_beside_that_of_nccl) {
  setenv("NCCL_DEBUG", "INFO", 1);
  EXPECT_EQ(read_with("FCCL_LOG", "error")->log_level, "error");
  unsetenv("NCCL_DEBUG");
}

TEST(Settings, refuse_a_list_that_names_no_nic) {
  for (const char* value : {",", ",,", "eth0, eth1", "eth\t0"}) expect_refused("FCCL_NICS", value);
  EXPECT_EQ(read_with("FCCL_NICS", "eth0,eth1")->nics, "eth0,eth1");
}

TEST(Settings, take_any_provider_by_a_name_that_can_be_compared) {
  EXPECT_EQ(read_settings()->transport, "auto");
  for (const char* value : {"tcp", "my-net.2", "a_b"}) EXPECT_EQ(read_with("FCCL_TRANSPORT", value)->transport, value);
  for (const char* value : {"TCP", "tcp ", "tcp/ip", "a-name-that-is-longer-than-thirty-one"})
    expect_refused("FCCL_TRANSPORT", value);
}

TEST(Settings, take_a_plug_in_by_its_whole_path) {
  EXPECT_EQ(read_settings()->transport_plugin, "");
  EXPECT_EQ(read_with("FCCL_TRANSPORT_PLUGIN", "/opt/net/libnet.so")->transport_plugin, "/opt/net/libnet.so");
  for (const char* value : {"libnet.so", "./libnet.so"}) expect_refused("FCCL_TRANSPORT_PLUGIN", value);
}

TEST(Settings, refuse_what_are_no_costs) {
  for (const char* value : {"cheap", "latency=20us", "latency=20us,"}) expect_refused("FCCL_COSTS", value);
  const char* costs = "latency=20us,message=1us,wire=100Gbit/s,add=10GB/s,host=10GB/s";
  EXPECT_EQ(read_with("FCCL_COSTS", costs)->costs, costs);
}

TEST(Settings, refuse_the_name_of_no_plan) {
  for (const char* value : {"pairwsie", "tree,chain", " tree"}) expect_refused("FCCL_ALGORITHM", value);
  EXPECT_EQ(read_with("FCCL_ALGORITHM", "tree")->algorithm, "tree");
}

TEST(Settings, that_are_too_long_are_refused_by_their_name_and_shown_in_part) {
  const std::string costs = "latency=20us,message=1us,wire=100Gbit/s,add=10GB/s,host=10." + std::string(3000, '0') + "GB/s";
  const auto settings = read_with("FCCL_COSTS", costs.c_str());
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, fcclInvalidUsage);
  EXPECT_NE(settings.error().message.find("FCCL_COSTS=latency=20us"), std::string::npos) << settings.error().message;
  EXPECT_NE(settings.error().message.find("3063 bytes"), std::string::npos) << settings.error().message;
  EXPECT_LT(settings.error().message.size(), 300U);
}

// The bootstrap compares all agreed settings in one message.
TEST(Settings, that_are_taken_can_be_agreed_on) {
  size_t longest = 0;
  for (size_t digits = 1; digits < 4096; digits += 64) {
    const std::string costs = "latency=20us,message=1us,wire=100Gbit/s,add=10GB/s,host=10." + std::string(digits, '0') + "GB/s";
    const auto settings = read_with("FCCL_COSTS", costs.c_str());
    if (settings) longest = settings->agreement().size();
  }
  EXPECT_GT(longest, 512U);
  EXPECT_LT(longest, 2048U);
}

TEST(Settings, of_the_table_have_defaults_that_they_allow) {
  for (const Setting& setting : every_setting()) {
    const std::string text = text_of(setting, Settings{});
    const auto parsed = parse_settings([&](const char* variable) {
      return std::string_view(variable) == setting.variable ? std::string_view(text) : std::string_view{};
    });
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(text_of(setting, *parsed), text);
  }
}

TEST(Settings, that_do_not_exist_are_warned_of_with_the_nearest_one) {
  const std::string_view environment[] = {"PATH=/bin",           "FCCL_TIMEOUT=1",      "FCCL_TIMOUT=30",
                                          "FCCL_LOG_LEVEL=info", "FCCL_TEST_TIMEOUT=3", "FCCL_TESTS_SPLIT=1",
                                          "FCCL_TORCH=2.13.0",   "NCCL_DEBUG=INFO",     "FCCL_"};
  const std::vector<std::string> warnings = warnings_of(environment);
  ASSERT_EQ(warnings.size(), 3U);
  EXPECT_EQ(warnings[0], "FCCL_TIMOUT is not a setting of FCCL and has no effect; the nearest is FCCL_TIMEOUT");
  EXPECT_NE(warnings[1].find("FCCL_LOG_LEVEL is not a setting"), std::string::npos) << warnings[1];
  EXPECT_NE(warnings[1].find("nearest is FCCL_LOG"), std::string::npos) << warnings[1];
}

TEST(Settings, that_do_not_exist_are_written_to_the_log_once) {
  // Runs in a process of its own, which has not warned yet.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto warn_twice = [] {
    setenv("FCCL_TIMOUT", "30", 1);
    (void)read_settings();
    ::testing::internal::CaptureStderr();
    (void)read_settings();
    std::exit(::testing::internal::GetCapturedStderr().empty() ? 0 : 1);
  };
  EXPECT_EXIT(warn_twice(), ::testing::ExitedWithCode(0), "FCCL_TIMOUT is not a setting");
}

TEST(Settings, that_do_not_exist_are_warned_of_by_the_first_rank_of_a_host_alone) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto read_as = [](const char* local_rank) {
    setenv("FCCL_TIMOUT", "30", 1);
    setenv("LOCAL_RANK", local_rank, 1);
    ::testing::internal::CaptureStderr();
    (void)read_settings();
    std::exit(::testing::internal::GetCapturedStderr().empty() ? 7 : 0);
  };
  EXPECT_EXIT(read_as("0"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(read_as("1"), ::testing::ExitedWithCode(7), "");
}

TEST(Settings, agree_where_what_decides_the_path_is_equal) {
  Settings one, other;
  other.timeout = 1s;
  other.log_level = "debug";
  EXPECT_EQ(one.agreement(), other.agreement());
  other.slot_bytes = 64;
  EXPECT_NE(one.agreement(), other.agreement());
  other = one;
  other.mailbox_bytes = 64;
  EXPECT_NE(one.agreement(), other.agreement());
}

}  // namespace
}  // namespace fccl::core
