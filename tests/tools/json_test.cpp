// Tests of fccl-info --json: the answers are those of the text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/ended.h"

namespace fccl::core::testing {
namespace {

nlohmann::json json_of(const std::string& arguments, const std::string& variables = "") {
  const Ended ended = run_info(arguments + " --json", variables);
  EXPECT_EQ(ended.status, 0) << ended.text;
  return nlohmann::json::parse(ended.text);
}

TEST(Json, has_the_devices_of_a_file_with_their_places) {
  const auto host = json_of("topology " FCCL_TEST_TOPOLOGIES "/p4d.24xlarge.txt").at("hosts").at(0);
  EXPECT_EQ(host.at("name"), "p4d.24xlarge");
  EXPECT_EQ(host.at("gpus").size(), 8U);
  EXPECT_EQ(host.at("ranks").size(), 8U);
  const auto& nic = host.at("nics").at(0);
  EXPECT_EQ(nic.at("name"), "efa_0");
  EXPECT_EQ(nic.at("megabits_per_second"), 100'000);
  EXPECT_TRUE(nic.contains("pci") && nic.contains("numa")) << nic;
}

TEST(Json, has_each_setting_with_its_default) {
  const auto settings = json_of("settings", "FCCL_SLOT_BYTES=1024");
  EXPECT_EQ(settings.at("FCCL_SLOT_BYTES"), (nlohmann::json{{"value", "1024"}, {"default", "262144"}}));
  EXPECT_EQ(settings.at("FCCL_TIMEOUT").at("value"), "600");
}

TEST(Json, says_why_there_is_no_gpu) {
  const auto gpus = json_of("gpus", "CUDA_VISIBLE_DEVICES=");
  EXPECT_TRUE(gpus.at("gpus").empty());
  EXPECT_TRUE(gpus.at("why_none").get<std::string>().starts_with("cannot use a GPU: ")) << gpus;
}

TEST(Json, has_every_plan_between_hosts_with_its_price) {
  const auto answer =
      json_of("explain AllGather 48K --hosts 3x2 --costs latency=10us,message=1us,wire=8Gbit/s,add=1000GB/s,host=1GB/s");
  EXPECT_EQ(answer.at("collective"), "AllGather");
  EXPECT_EQ(answer.at("bytes"), 49152);
  EXPECT_EQ(answer.at("hosts"), 3);
  ASSERT_EQ(answer.at("plans").size(), 2U);
  const auto& chosen = answer.at("plans").at(0);
  EXPECT_EQ(chosen.at("name"), "pairwise");
  EXPECT_EQ(chosen.at("is_chosen"), true);
  EXPECT_NEAR(chosen.at("seconds").at("total").get<double>(), 73.7e-6, 0.05e-6);
  EXPECT_TRUE(answer.at("median_error_percent").is_null());
  const auto of_short = json_of("explain AllReduce 8 --hosts 3x2");
  ASSERT_EQ(of_short.at("plans").size(), 3U);
  EXPECT_EQ(of_short.at("plans").at(0).at("name"), "entries");
  EXPECT_EQ(of_short.at("plans").at(0).at("is_chosen"), true);
  EXPECT_EQ(of_short.at("plans").at(1).at("is_chosen"), false);
}

}  // namespace
}  // namespace fccl::core::testing
