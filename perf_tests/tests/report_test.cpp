// Tests that the report has the lines and columns of nccl-tests to the character.
#include "report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

namespace fccl::perf {
namespace {

std::string printed(const std::function<void(Report&)>& use) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  Report report(out, "all_gather_perf");
  use(report);
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

constexpr Row kExample{.bytes = 1048576,
                       .count = 131072,
                       .type = "float",
                       .op = "none",
                       .root = -1,
                       .out_of_place = {21.34e-6, 49.13e9, 24.57e9, 0},
                       .in_place = {20.9e-6, 50.17e9, 25.09e9, 3}};

TEST(Report, NumbersKeepAsManyDecimalsAsTheirColumnHolds) {
  EXPECT_EQ(fixed_width(0, 7), "   0.00");
  EXPECT_EQ(fixed_width(21.34, 7), "  21.34");
  EXPECT_EQ(fixed_width(12345.67, 7), "12345.7");
  EXPECT_EQ(fixed_width(1234567, 7), "1234567");
  EXPECT_EQ(fixed_width(12345678, 7), "1.2e+07");
  EXPECT_EQ(fixed_width(999.999, 6), "1000.0");
  EXPECT_EQ(fixed_width(1234567, 6), " 1e+06");
}

TEST(Report, TheHeaderIsTheOneOfNcclTests) {
  EXPECT_EQ(
      printed([](Report& report) { report.header(); }),
      "#\n"
      "#                                                              out-of-place                       in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong "
      "\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         "
      "\n");
}

TEST(Report, ARowIsTheOneOfNcclTests) {
  EXPECT_EQ(printed([](Report& report) { report.row(kExample); }),
            "     1048576        131072     float    none      -1    21.34   49.13   24.57       0    20.90   50.17   25.09    "
            "   3\n");
}

TEST(Report, AnUncheckedCellSaysSo) {
  Row row = kExample;
  row.in_place.wrong.reset();
  EXPECT_EQ(printed([&](Report& report) { report.row(row); }),
            "     1048576        131072     float    none      -1    21.34   49.13   24.57       0    20.90   50.17   25.09    "
            "N/A\n");
}

TEST(Report, TheEndHasTheMeanBusBandwidthOfAllCells) {
  const std::string text = printed([](Report& report) {
    report.row(kExample);
    report.end(0);
  });
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "# Out of bounds values : 0 OK\n"
            "# Avg bus bandwidth    : 24.83 \n"
            "#\n"
            "# Collective test concluded: all_gather_perf\n"
            "#\n"
            "\n");
}

TEST(Report, WrongDataFailsTheEnd) {
  EXPECT_EQ(printed([](Report& report) { report.end(2); }).substr(0, 34), "# Out of bounds values : 2 FAILED\n");
}

TEST(Report, TheBeginningNamesEveryRankAndItsMemory) {
  Arguments arguments;
  arguments.step_factor = 2;
  const std::string text = printed([&](Report& report) { report.begin(arguments, {{3, 4242, "node", "A Processor"}}); });
  EXPECT_NE(text.find("# Collective test starting: all_gather_perf\n"
                      "# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: 2(factor) warmup iters: 1 iters: 20 "
                      "agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
                      "#\n"
                      "# Using devices\n"
                      "#  Rank  3 Group  0 Pid   4242 on       node device -1 [host memory] A Processor\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace fccl::perf
