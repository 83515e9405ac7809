// Tests that the report has the lines and columns of nccl-tests to the character.
#include "report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <regex>

#include "init_cost.h"

namespace fccl::perf {
namespace {

std::string printed(const Arguments& arguments, const std::function<void(Table&)>& use) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  Table table(out, "all_gather_perf", arguments);
  use(table);
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

const Row kExample{
    .bytes = 1048576,
    .count = 131072,
    .type = "float",
    .op = "none",
    .root = -1,
    .out_of_place = {.seconds = 21.34e-6, .algorithm_bandwidth = 49.13e9, .bus_bandwidth = 24.57e9, .wrong = 0},
    .in_place = Measurement{.seconds = 20.9e-6, .algorithm_bandwidth = 50.17e9, .bus_bandwidth = 25.09e9, .wrong = 3}};

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
      printed({}, [](Table& table) { table.header(); }),
      "#\n"
      "#                                                              out-of-place                       in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong "
      "\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         "
      "\n");
}

TEST(Report, ARowIsTheOneOfNcclTests) {
  EXPECT_EQ(printed({}, [](Table& table) { table.row(kExample); }),
            "     1048576        131072     float    none      -1    21.34   49.13   24.57       0    20.90   50.17   25.09    "
            "   3\n");
}

TEST(Report, AnUncheckedCellSaysSo) {
  Row row = kExample;
  row.in_place->wrong.reset();
  EXPECT_EQ(printed({}, [&](Table& table) { table.row(row); }),
            "     1048576        131072     float    none      -1    21.34   49.13   24.57       0    20.90   50.17   25.09    "
            "N/A\n");
}

TEST(Report, TheEndHasTheMeanBusBandwidthOfAllCells) {
  const std::string text = printed({}, [](Table& table) {
    table.row(kExample);
    table.end({});
  });
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "# Out of bounds values : 0 OK\n"
            "# Avg bus bandwidth    : 24.83 \n"
            "#\n"
            "# Collective test concluded: all_gather_perf\n"
            "#\n"
            "\n");
}

// Four ranks were timed for 20 calls of 21.34 and 20 of 20.9 us each, and waited 1,690 us in all: half of that time.
TEST(Report, TheEndSaysHowMuchOfTheirTimeRanksWaitedForAProcessor) {
  Row row = kExample;
  row.out_of_place.queued_seconds = 1e-3;
  row.in_place->queued_seconds = 0.69e-3;
  const std::vector<RankInfo> ranks(4);
  const Arguments arguments;
  const std::string text = printed(arguments, [&](Table& table) {
    table.begin({.arguments = arguments, .ranks = ranks, .library = ""});
    table.row(row);
    table.end({});
  });
  EXPECT_NE(text.find("# Waits for processors : 50 % of the ranks' time; measure again on a machine that does nothing else\n"),
            std::string::npos)
      << text;
}

TEST(Report, TheEndExplainsASizeThatNobodyAskedFor) {
  Row row = kExample;
  row.bytes = 0;
  const auto explained = [&](const Arguments& arguments) {
    const std::string text = printed(arguments, [&](Table& table) {
      table.row(row);
      table.end({});
    });
    return text.find("# Size 0               : blocks are rounded down to a multiple of 16 bytes") != std::string::npos;
  };
  Arguments arguments;
  EXPECT_TRUE(explained(arguments));
  arguments.odd = true;
  EXPECT_FALSE(explained(arguments));
  arguments.odd = false;
  arguments.min_bytes = 0;
  EXPECT_FALSE(explained(arguments));
  arguments.min_bytes = 8;
  row.bytes = 64;
  EXPECT_FALSE(explained(arguments));
}

TEST(Report, WrongDataFailsTheEnd) {
  EXPECT_EQ(printed({}, [](Table& table) { table.end({.bad_checks = 2}); }).substr(0, 34),
            "# Out of bounds values : 2 FAILED\n");
}

TEST(Report, TheBeginningNamesEveryRankAndItsMemory) {
  Arguments arguments;
  arguments.step_factor = 2;
  const std::vector<RankInfo> ranks{{3, 1, 4242, "host", {.name = "A Processor"}}};
  const std::string text = printed(arguments, [&](Table& table) { table.begin({arguments, ranks, "", {}}); });
  EXPECT_NE(text.find("# Collective test starting: all_gather_perf\n"
                      "# nThread 1 nGpus 0 minBytes 33554432 maxBytes 33554432 step: 2(factor) warmup iters: 1 iters: 20 "
                      "agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
                      "# One rank: no byte goes to another one; start more with -t or by mpirun\n"
                      "#\n"
                      "# Using devices\n"
                      "#  Rank  3 Group  1 Pid   4242 on       host device  0 [cpu] A Processor\n"),
            std::string::npos)
      << text;
}

TEST(Report, TheBeginningOfAGpuRunSaysHowRanksShareGpus) {
  Arguments arguments;
  arguments.device = DeviceKind::cuda;
  arguments.threads = 2;
  const DeviceInfo gpu{.ordinal = 1, .domain = 0, .bus = 0x53, .slot = 0, .bytes = 1 << 30, .name = "A GPU"};
  const std::vector<RankInfo> ranks{{0, 0, 7, "host", gpu}, {1, 0, 7, "host", gpu}};
  const std::string text = printed(arguments, [&](Table& table) { table.begin({arguments, ranks, "", {}, "blocking"}); });
  EXPECT_NE(text.find("# nThread 2 nGpus 1 "), std::string::npos) << text;
  EXPECT_EQ(text.find("# One rank"), std::string::npos) << text;
  EXPECT_NE(text.find("# CUDA memory, path blocking: at most 2 ranks per GPU, as threads\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#  Rank  1 Group  0 Pid      7 on       host device  1 [0000:53:00] A GPU\n"), std::string::npos)
      << text;
}

TEST(Report, PerIterationColumnsAreTheOnesOfNcclTests) {
  Arguments arguments;
  arguments.per_iteration = true;
  EXPECT_EQ(printed(arguments, [](Table& table) { table.header(); }),
            "#\n"
            "#                                                                 out-of-place (+ per-iteration)"
            "                                in-place (+ per-iteration)\n"
            "#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99  "
            "  i_cv%"
            "     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv% \n"
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)     (us)     (us)  "
            "    (%)"
            "     (us)  (GB/s)  (GB/s)             (us)     (us)     (us)      (%) \n");
}

TEST(Report, ATimestampIsTheLastColumn) {
  Arguments arguments;
  arguments.timestamps = true;
  arguments.cpu_time = true;
  const std::string text = printed(arguments, [](Table& table) {
    table.header();
    table.row(kExample);
  });
  EXPECT_NE(text.find("cputime   algbw   busbw  #wrong  cputime   algbw   busbw  #wrong           timestamp\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  %Y-%m-%d %H:%M:%S\n"), std::string::npos);
  EXPECT_TRUE(std::regex_search(text, std::regex("      3  [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\n$"))) << text;
}

TEST(Report, OwnColumnsFollowEachSide) {
  Arguments arguments;
  arguments.percentiles = arguments.ulp = true;
  Row row = kExample;
  row.out_of_place.ulp = 0.5;
  row.out_of_place.iterations = Iterations{.statistics = statistics_of({1e-6, 2e-6, 3e-6}), .times = {}, .process_times = {}};
  const std::string text = printed(arguments, [&](Table& table) { table.row(row); });
  EXPECT_NE(text.find("   24.57       0     2.00     3.00    0.50    20.90"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("     N/A\n")) << text;
}

TEST(Report, SkewAddsHowFarApartRanksCameAndWhatTheLastOnePaid) {
  Arguments arguments;
  arguments.skew = 100;
  Row row = kExample;
  row.out_of_place.skew = Skew{.apart = 61.5e-6, .last = 4.25e-6};
  const std::string text = printed(arguments, [&](Table& table) {
    table.header();
    table.row(row);
  });
  EXPECT_NE(text.find("  #wrong    apart     last     time"), std::string::npos) << text;
  EXPECT_NE(text.find("   24.57       0    61.50     4.25    20.90"), std::string::npos) << text;
}

TEST(Report, ARowOfACollectiveThatDoesNotWorkInPlaceHasAsManyColumns) {
  Arguments arguments;
  arguments.per_iteration = arguments.percentiles = arguments.ulp = true;
  arguments.skew = 100;
  Row row = kExample;
  for (const bool plain : {true, false}) {
    row.in_place = kExample.in_place;
    const std::string with = printed(plain ? Arguments{} : arguments, [&](Table& table) { table.row(row); });
    row.in_place.reset();
    const std::string without = printed(plain ? Arguments{} : arguments, [&](Table& table) { table.row(row); });
    EXPECT_EQ(without.size(), with.size()) << without;
    EXPECT_TRUE(without.ends_with("      N/A     N/A     N/A     N/A\n") == plain) << without;
  }
}

TEST(Report, TheMeanIsThatOfTheCellsThereAre) {
  Row row = kExample;
  row.in_place.reset();
  const std::string text = printed({}, [&](Table& table) {
    table.row(row);
    table.end({});
  });
  EXPECT_NE(text.find("# Avg bus bandwidth    : 24.57"), std::string::npos) << text;
}

TEST(Report, AMissedBandwidthFailsTheEnd) {
  const auto end_of = [](double minimum) {
    return printed({}, [&](Table& table) {
      table.row(kExample);
      table.end({.min_bandwidth = minimum});
    });
  };
  EXPECT_NE(end_of(27.5).find("# Avg bus bandwidth    : 24.83 OK\n"), std::string::npos);
  EXPECT_NE(end_of(27.6).find("# Avg bus bandwidth    : 24.83 FAILED\n"), std::string::npos);
}

TEST(Report, MemoryIsALineOfTheEnd) {
  EXPECT_NE(
      printed(
          {},
          [](Table& table) { table.end({.init = lines_of_init({2, 0.5, 0.25, 0.125, 1, 0.0625, 24, 800, 2048, 3 << 20}, 2)}); })
          .find("# Init                 : 2.000 s: roster 0.500, segment 0.250, barrier 0.125, network 1.000, hosts 0.062; "
                "each of "
                "the slowest rank\n# Init                 : 24 sockets, 800 messages, 2.00 KB sent; 1.50 MB of shared memory "
                "per rank\n"),
      std::string::npos);
  EXPECT_NE(printed({}, [](Table& table) { table.end({.memory = memory_text(1.5 * (1 << 20))}); })
                .find("# Collective test concluded: all_gather_perf\n# Host memory usage    : 1.50 MB\n#\n"),
            std::string::npos);
}

TEST(Table, TheSlotsOfCudaMemoryHaveALineOfTheirOwn) {
  const std::string text = text_of_slots({.size = sizeof(fcclMemUsage_t), .gatherSlots = 16 << 20, .pairSlots = 4 << 20});
  EXPECT_EQ(text, "Gather 16.0 MB | Pair 4.00 MB");
  EXPECT_NE(printed({}, [&](Table& table) { table.end({.slots = text}); }).find("# CUDA slots           : " + text + "\n#\n"),
            std::string::npos);
}

TEST(Table, AnArenaHasALineOfItsOwn) {
  constexpr std::size_t kMiB = 1 << 20;
  const std::string text = text_of(
      {.size = sizeof(fcclMemUsage_t), .allocated = 3 * kMiB, .mostAllocated = 5 * kMiB, .filled = 0, .reserved = kMiB << 10});
  EXPECT_EQ(text, "Allocated 3.00 MB | Most 5.00 MB | Filled 0.00 B | Addresses 1.00 GB");
  EXPECT_NE(printed({}, [&](Table& table) { table.end({.arena = text}); }).find("# Arena                : " + text + "\n#\n"),
            std::string::npos);
}

}  // namespace
}  // namespace fccl::perf
