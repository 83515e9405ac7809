// Tests the JSON file against the keys that nccl-tests' parsers read.
#include "json_report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fccl::perf {
namespace {

// A folder for one test, removed afterwards.
class JsonReportTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) /
             (std::string("json_report_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    path = folder / "report.json";
  }
  void TearDown() override {
    std::fclose(out);
    std::filesystem::remove_all(folder);
  }

  static nlohmann::json read(const std::string& file) { return nlohmann::json::parse(std::ifstream(file)); }
  // Returns what a run with one row leaves behind, in the order of its keys.
  nlohmann::ordered_json run(const Arguments& arguments, const Row& measured) {
    const std::vector<RankInfo> ranks{{0, 0, 7, "host", {.name = "A Processor"}}};
    JsonReport report(path, out);
    report.begin({arguments, ranks, "", {}}, {"all_gather_perf", "-J", path}, {"FCCL_LOG=warn"});
    report.row(measured, "all_gather_perf");
    report.end({});
    return nlohmann::ordered_json::parse(std::ifstream(path));
  }

  std::filesystem::path folder;
  std::string path;
  std::FILE* out = std::tmpfile();
  Row row{.bytes = 64,
          .count = 8,
          .type = "float",
          .op = "none",
          .root = -1,
          .out_of_place = {.seconds = 2e-6, .algorithm_bandwidth = 1e9, .bus_bandwidth = 5e8, .wrong = 0},
          .in_place = Measurement{.seconds = 3e-6, .algorithm_bandwidth = 2e9, .bus_bandwidth = 1e9, .wrong = {}}};
};

std::vector<std::string> keys_of(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST_F(JsonReportTest, HasTheKeysOfVersion3) {
  const auto document = run({}, row);
  EXPECT_EQ(document["version"], 3);
  EXPECT_EQ(keys_of(document),
            (std::vector<std::string>{"version", "start_time", "args", "env", "nccl_version", "config", "results",
                                      "out_of_bounds", "average_bus_bandwidth", "errors", "end_time"}));
  EXPECT_EQ(keys_of(document["results"][0]), (std::vector<std::string>{"size", "count", "type", "redop", "root", "out_of_place",
                                                                       "in_place", "actual_iterations", "experiment_name"}));
  EXPECT_EQ(keys_of(document["config"]["devices"][0]),
            (std::vector<std::string>{"rank", "group", "pid", "hostname", "device", "device_hex", "device_info"}));
  EXPECT_TRUE(document["config"].contains("step_bytes"));
  EXPECT_EQ(document["config"]["ngpus"], 0);
  EXPECT_EQ(document["config"]["devices"][0]["device_hex"], "cpu");
}

TEST_F(JsonReportTest, ARunOnGpusNamesThePathAndWhoSharesThem) {
  Arguments arguments;
  arguments.device = DeviceKind::cuda;
  const DeviceInfo gpu{.ordinal = 1, .domain = 0, .bus = 0x53, .slot = 0, .bytes = 1 << 30, .name = "A GPU"};
  const std::vector<RankInfo> ranks{{0, 0, 7, "host", gpu}, {1, 0, 8, "host", gpu}, {2, 0, 9, "other", gpu}};
  JsonReport report(path, out);
  report.begin({arguments, ranks, "", {}, "bounce"}, {}, {});
  report.end({});
  const auto config = read(path)["config"];
  EXPECT_EQ(config["device"], "cuda");
  EXPECT_EQ(config["cuda_path"], "bounce");
  EXPECT_EQ(config["ranks_per_gpu"], 2);
  EXPECT_EQ(config["ranks_are"], "processes");
  EXPECT_EQ(config["devices"][0]["device"], 1);
  EXPECT_EQ(config["devices"][0]["device_hex"], "0000:53:00");
  EXPECT_EQ(config["ngpus"], 1);
}

TEST_F(JsonReportTest, ARowNamesThePathAsMetricsDo) {
  row.out_of_place.path = "mapped";
  const auto result = run({}, row)["results"][0];
  EXPECT_EQ(result["out_of_place"]["path"], "mapped");
  EXPECT_FALSE(result["out_of_place"].contains("copied"));
  EXPECT_FALSE(result["in_place"].contains("path")) << "the library does not tell";
}

TEST_F(JsonReportTest, ARowOfCudaMemoryNamesThePathAsTheSettingDoesAndWhatWasCopied) {
  Arguments arguments;
  arguments.device = DeviceKind::cuda;
  const std::vector<RankInfo> ranks{{0, 0, 7, "host", {.name = "A GPU"}}};
  const auto path_of = [&](const char* in_metrics, const char* setting) {
    const std::string file = folder / (std::string(in_metrics) + setting);
    JsonReport report(file, out);
    report.begin({arguments, ranks, "", {}, setting}, {}, {});
    row.out_of_place.path = in_metrics;
    row.out_of_place.copied = 96;
    report.row(row, "all_gather_perf");
    report.end({});
    const auto side = read(file)["results"].back()["out_of_place"];
    EXPECT_EQ(side["copied"], 96.0);
    return side["path"].get<std::string>();
  };
  EXPECT_EQ(path_of("landed", "auto"), "host");
  EXPECT_EQ(path_of("peer", "auto"), "peer");
  EXPECT_EQ(path_of("mapped", "auto"), "bounce");
  EXPECT_EQ(path_of("ring", "blocking"), "blocking");
  EXPECT_EQ(path_of("transfer", "auto"), "staged");
  arguments.uneven = Uneven::linear;
  EXPECT_EQ(path_of("mailbox", "auto"), "staged");
}

TEST_F(JsonReportTest, ValuesHaveNcclTestsTypes) {
  const auto document = run({}, row);
  const auto& result = document["results"][0];
  EXPECT_EQ(result["root"], "    -1");
  EXPECT_DOUBLE_EQ(result["out_of_place"]["time"], 2);
  EXPECT_DOUBLE_EQ(result["out_of_place"]["alg_bw"], 1);
  EXPECT_DOUBLE_EQ(result["out_of_place"]["bus_bw"], 0.5);
  EXPECT_EQ(result["out_of_place"]["nwrong"], 0.0);
  EXPECT_TRUE(result["in_place"]["nwrong"].is_null());
  EXPECT_EQ(document["config"]["per_iter_timing"], "false");
  EXPECT_EQ(document["out_of_bounds"]["okay"], "true");
  EXPECT_EQ(document["average_bus_bandwidth"]["okay"], "unchecked");
  EXPECT_DOUBLE_EQ(document["average_bus_bandwidth"]["bandwidth"], 0.75);
}

TEST_F(JsonReportTest, WhatDoesNotWorkInPlaceIsNull) {
  row.in_place.reset();
  const auto document = run({}, row);
  EXPECT_TRUE(document["results"][0]["in_place"].is_null());
  EXPECT_DOUBLE_EQ(document["average_bus_bandwidth"]["bandwidth"], 0.5);
}

TEST_F(JsonReportTest, IterationsHaveTheKeysOfTheAnalyzer) {
  Arguments arguments;
  arguments.per_iteration = arguments.cpu_time = true;
  row.in_place->iterations = Iterations{.statistics = statistics_of({1e-6, 3e-6}),
                                        .skipped = 0,
                                        .times = {1e-6, 3e-6},
                                        .process_times = {{1e-6, 2e-6}, {1e-6, 3e-6}}};
  const auto result = run(arguments, row)["results"][0];
  EXPECT_TRUE(result["in_place"].contains("cpu_time"));
  EXPECT_EQ(keys_of(result["in_place_per_iter"]),
            (std::vector<std::string>{"skipped_iterations", "min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us",
                                      "stdev_us", "cv_pct", "times_us", "per_process_max_times_us"}));
  EXPECT_DOUBLE_EQ(result["in_place_per_iter"]["per_process_max_times_us"][1][1], 3);
  EXPECT_DOUBLE_EQ(result["in_place"]["p99"], 3);
}

TEST_F(JsonReportTest, AFileThatExistsIsLeftAlone) {
  std::ofstream(path) << "before";
  std::ofstream(path + ".0") << "before";
  {
    JsonReport(path, out).fail("a reason");
  }
  std::string kept;
  std::ifstream(path) >> kept;
  EXPECT_EQ(kept, "before");
  EXPECT_EQ(read(path + ".1")["errors"][0], "a reason");
}

}  // namespace
}  // namespace fccl::perf
