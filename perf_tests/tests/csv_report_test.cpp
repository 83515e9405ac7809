// Tests what the CSV file holds, and when it is refused.
#include "csv_report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace fccl::perf {
namespace {

// A folder for one test, removed afterwards.
class CsvReportTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) /
             (std::string("csv_report_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    path = folder / "rows.csv";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // The lines of the file after one row.
  std::vector<std::string> lines_of(const Row& row) const {
    auto report = *CsvReport::open(path);
    report.row(row, "reduce_perf", 3);
    EXPECT_EQ(report.fault(), "");
    std::ifstream file(report.path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  std::filesystem::path folder;
  std::string path;
  Row row{.bytes = 64,
          .count = 8,
          .type = "double",
          .op = "prod",
          .root = 2,
          .out_of_place = {.seconds = 1.0 / 3, .algorithm_bandwidth = 1e9, .bus_bandwidth = 5e8, .wrong = 7},
          .in_place = Measurement{.seconds = 0.5, .algorithm_bandwidth = 2e9, .bus_bandwidth = 25e7, .wrong = {}}};
};

TEST_F(CsvReportTest, ARowHasALineForEachDirection) {
  const auto lines = lines_of(row);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(
      lines[0],
      "program,ranks,type,op,root,size_bytes,count,place,time_us,algbw_gb_per_s,busbw_gb_per_s,wrong,queued_us,p50_us,p99_us,"
      "ulp,apart_us,last_us");
  EXPECT_EQ(lines[1], "reduce_perf,3,double,prod,2,64,8,out_of_place,333333,1,0.5,7,0,,,,,");
  EXPECT_EQ(lines[2], "reduce_perf,3,double,prod,2,64,8,in_place,500000,2,0.25,,0,,,,,");
}

TEST_F(CsvReportTest, NumbersHaveSixDigitsAndNoExponent) {
  row.out_of_place.seconds = 26489.841000000015e-6;
  row.out_of_place.algorithm_bandwidth = 1234.5678e3;
  row.out_of_place.bus_bandwidth = 9876543.21e9;
  const std::string line = lines_of(row)[1];
  EXPECT_NE(line.find(",26489.8,0.00123457,9876540,7,"), std::string::npos) << line;
}

TEST_F(CsvReportTest, WhatIsNotMeasuredInPlaceHasNoLine) {
  row.in_place.reset();
  EXPECT_EQ(lines_of(row).size(), 2u);
}

TEST_F(CsvReportTest, WhatFlagsAddHasColumnsOfItsOwn) {
  row.out_of_place.iterations = Iterations{.statistics = {.p50 = 2e-6, .p99 = 3e-6}, .times = {}, .process_times = {}};
  row.out_of_place.ulp = 0.5;
  row.out_of_place.skew = Skew{.apart = 40e-6, .last = 5e-6};
  const std::string line = lines_of(row)[1];
  EXPECT_TRUE(line.ends_with(",7,0,2,3,0.5,40,5")) << line;
}

TEST_F(CsvReportTest, AFileThatIsThereIsKept) {
  std::ofstream(path) << "mine";
  EXPECT_EQ(lines_of(row).size(), 3u);
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), "mine");
  EXPECT_TRUE(std::filesystem::exists(folder / "rows.0.csv"));
}

TEST_F(CsvReportTest, ANameWithoutTheEndingGetsTheNumberAtItsEnd) {
  path = folder / "rows";
  std::ofstream(path) << "mine";
  std::ofstream(path + ".0") << "mine, too";
  EXPECT_EQ(CsvReport::open(path)->path(), path + ".1");
}

TEST_F(CsvReportTest, AFileThatCannotBeMadeIsRefusedByName) {
  const auto report = CsvReport::open(folder / "missing" / "rows.csv");
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("missing/rows.csv failed (No such file or directory)"), std::string::npos)
      << report.error().message;
}

TEST_F(CsvReportTest, on_a_full_device_is_an_error) {
  const auto report = CsvReport::open("/dev/full");
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("writing to /dev/full failed (No space left on device)"), std::string::npos)
      << report.error().message;
}

}  // namespace
}  // namespace fccl::perf
