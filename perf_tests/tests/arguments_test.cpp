// Tests the command line of the perf binaries.
#include "arguments.h"

#include <gtest/gtest.h>

#include <vector>

#include "flags.h"

namespace fccl::perf {
namespace {

Parsed parse(std::vector<std::string> words) {
  words.insert(words.begin(), "all_gather_perf");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_arguments(static_cast<int>(words.size()), argv.data());
}

int exit_status(const std::vector<std::string>& words) { return static_cast<int>(parse(words).exit_code); }

TEST(Arguments, DefaultsAreThoseOfNcclTests) {
  const Parsed parsed = parse({});
  ASSERT_TRUE(parsed.arguments);
  EXPECT_EQ(parsed.arguments->min_bytes, 32u << 20);
  EXPECT_EQ(parsed.arguments->max_bytes, 32u << 20);
  EXPECT_EQ(parsed.arguments->step_bytes, 1u << 20);
  EXPECT_EQ(parsed.arguments->step_factor, 1);
  EXPECT_EQ(parsed.arguments->iterations, 20);
  EXPECT_EQ(parsed.arguments->warmup, 1);
  EXPECT_EQ(parsed.arguments->checks, 1);
  EXPECT_EQ(parsed.arguments->type, "float");
  EXPECT_EQ(parsed.arguments->op, "sum");
  EXPECT_EQ(parsed.arguments->average, Average::mean);
  EXPECT_FALSE(parsed.arguments->per_iteration || parsed.arguments->odd || parsed.arguments->ulp);
}

TEST(Arguments, TheRootAllIsEachRankInTurn) { EXPECT_EQ(parse({"-r", "all"}).arguments->root, -1); }

TEST(Arguments, TypesHaveTheNamesOfTorchToo) {
  const std::pair<const char*, const char*> names[] = {{"fp16", "half"},  {"float16", "half"},   {"bf16", "bfloat16"},
                                                       {"fp32", "float"}, {"float32", "float"},  {"fp64", "double"},
                                                       {"half", "half"},  {"float64", "double"}, {"all", "all"}};
  for (const auto& [name, own] : names) EXPECT_EQ(parse({"-d", name}).arguments->type, own);
  EXPECT_FALSE(parse({"-d", "fp15"}).arguments);
}

TEST(Arguments, ARefusedValueIsToldWithThoseThatAreKnown) {
  EXPECT_EQ(parse({"-o", "foo"}).text, "invalid value for -o: foo; it takes <sum|prod|min|max|avg|mulsum|all>\n");
  EXPECT_EQ(parse({"-b", "8X"}).text, "invalid value for -b: 8X; it takes <size K|M|G>\n");
  EXPECT_EQ(parse({"--rotate", "maybe"}).text, "invalid value for --rotate: maybe; it takes <yes|no>\n");
}

TEST(Arguments, AnUnknownOptionIsOneLine) {
  EXPECT_EQ(parse({"-Q", "3"}).text, "unknown option or missing value: -Q; --help lists the options\n");
  EXPECT_EQ(parse({"8"}).text, "unknown argument: 8; --help lists the options\n");
}

TEST(Arguments, EveryFlagReachesItsField) {
  const Parsed parsed =
      parse({"-t", "3", "-g", "1", "-b", "8", "-e", "64M", "-i", "2K",     "-f",    "2",        "-n",           "7",
             "-m", "4", "-w", "0", "-N", "0", "-c", "5",   "-o", "avg",    "-d",    "bfloat16", "-r",           "-1",
             "-z", "3", "-y", "0", "-T", "9", "-a", "3",   "-u", "1",      "-p",    "1",        "-I",           "1",
             "-K", "2", "-C", "1", "-S", "1", "-M", "1",   "-J", "a.json", "--odd", "--ulp",    "--percentiles"});
  ASSERT_TRUE(parsed.arguments) << parsed.text;
  const Arguments& arguments = *parsed.arguments;
  EXPECT_EQ(arguments.threads, 3);
  EXPECT_EQ(arguments.min_bytes, 8u);
  EXPECT_EQ(arguments.max_bytes, 64u << 20);
  EXPECT_EQ(arguments.step_bytes, 2048u);
  EXPECT_EQ(arguments.step_factor, 2);
  EXPECT_EQ(arguments.iterations, 7);
  EXPECT_EQ(arguments.aggregated, 4);
  EXPECT_EQ(arguments.warmup, 0);
  EXPECT_EQ(arguments.cycles, 0);
  EXPECT_EQ(arguments.checks, 5);
  EXPECT_EQ(arguments.op, "avg");
  EXPECT_EQ(arguments.type, "bfloat16");
  EXPECT_EQ(arguments.root, -1);
  EXPECT_EQ(arguments.blocking, Blocking::untimed_barrier);
  EXPECT_FALSE(arguments.null_stream());
  EXPECT_EQ(arguments.timeout_seconds, 9);
  EXPECT_EQ(arguments.average, Average::maximum);
  EXPECT_EQ(arguments.unaligned_elements, 1);
  EXPECT_TRUE(arguments.parallel_init && arguments.per_iteration && arguments.cpu_time && arguments.timestamps);
  EXPECT_TRUE(arguments.memory && arguments.odd && arguments.ulp && arguments.percentiles);
  EXPECT_EQ(arguments.skipped, 2);
  EXPECT_EQ(arguments.json_path, "a.json");
}

TEST(Arguments, LongFlagsMeanTheSame) {
  const Parsed parsed = parse({"--minbytes", "1K", "--maxbytes=2k", "--iters", "3"});
  ASSERT_TRUE(parsed.arguments) << parsed.text;
  EXPECT_EQ(parsed.arguments->min_bytes, 1024u);
  EXPECT_EQ(parsed.arguments->max_bytes, 2048u);
  EXPECT_EQ(parsed.arguments->iterations, 3);
}

TEST(Arguments, SizesTakeFractionsAndSuffixesInEitherCase) {
  const Parsed parsed = parse({"-b", "0.5k", "-e", "1.5G"});
  ASSERT_TRUE(parsed.arguments) << parsed.text;
  EXPECT_EQ(parsed.arguments->min_bytes, 512u);
  EXPECT_EQ(parsed.arguments->max_bytes, 1610612736u);
}

TEST(Arguments, ABadSizeEndsWith255) {
  EXPECT_EQ(exit_status({"-b", "8X"}), 255);
  EXPECT_EQ(exit_status({"-b", "8KB"}), 255);
  EXPECT_EQ(exit_status({"-e", "-1"}), 255);
}

TEST(Arguments, AMinimumAboveTheMaximumEndsWith255AndSaysSo) {
  const Parsed parsed = parse({"-b", "16", "-e", "8"});
  EXPECT_FALSE(parsed.arguments);
  EXPECT_EQ(parsed.exit_code, ExitCode::bad_sizes);
  EXPECT_EQ(parsed.text, "invalid sizes for 'minbytes' and 'maxbytes': 16 > 8\n");
}

TEST(Arguments, ASweepThatNeverEndsIsRefused) {
  EXPECT_EQ(exit_status({"-b", "0", "-e", "8", "-f", "2"}), 255);
  EXPECT_EQ(exit_status({"-b", "0", "-e", "8", "-i", "0"}), 255);
  EXPECT_TRUE(parse({"-b", "0", "-e", "0", "-f", "2"}).arguments);
}

TEST(Arguments, WhatMeansNothingEndsWith6) {
  EXPECT_EQ(exit_status({"-n", "3x"}), 6);
  EXPECT_EQ(exit_status({"-n", "0"}), 6);
  EXPECT_EQ(exit_status({"-d", "quad"}), 6);
  EXPECT_EQ(exit_status({"-o", "xor"}), 6);
  EXPECT_EQ(exit_status({"-g", "0"}), 6);
  EXPECT_EQ(exit_status({"-J", "report.txt"}), 6);
  EXPECT_EQ(exit_status({"-Q"}), 6);
  EXPECT_EQ(exit_status({"-n"}), 6);
  EXPECT_EQ(exit_status({"8"}), 6);
}

TEST(Arguments, WhatFcclCannotDoEndsWith5AndSaysWhy) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"-G", "1"}, {"-R", "2"}, {"-x", "1"}, {"-D", "1"}, {"-V", "8"}, {"-g", "2"}})
    EXPECT_EQ(exit_status(words), 5) << words[0];
  EXPECT_EQ(parse({"-G", "3"}).text,
            "-G 3 (--cudagraph) means nothing here: no call is captured in a CUDA graph yet; leave it out or give 0\n");
  EXPECT_EQ(parse({"-g", "2"}).text, "-g 2 (--ngpus) is for GPUs: give --device cuda, or -t for ranks as threads\n");
}

TEST(Arguments, TheMemoryIsTheCpusUnlessToldOtherwise) {
  EXPECT_FALSE(parse({}).arguments->uses_gpus());
  EXPECT_FALSE(parse({"--device", "cpu"}).arguments->uses_gpus());
  EXPECT_TRUE(parse({"--device", "cuda"}).arguments->uses_gpus());
  EXPECT_EQ(exit_status({"--device", "rocm"}), 6);
}

TEST(Arguments, EachMemoryHasItsUsualStream) {
  EXPECT_TRUE(parse({}).arguments->null_stream());
  EXPECT_FALSE(parse({"--device", "cuda"}).arguments->null_stream());
  EXPECT_TRUE(parse({"--device", "cuda", "-y", "1"}).arguments->null_stream());
}

TEST(Arguments, EveryGpuOfAThreadIsARank) {
  EXPECT_EQ(parse({"--device", "cuda", "-t", "2", "-g", "3"}).arguments->ranks_per_process(), 6);
}

TEST(Arguments, TheNeutralValueOfWhatFcclCannotDoIsAccepted) {
  EXPECT_TRUE(parse({"-G", "0", "-R", "0", "-x", "0", "-D", "0", "-V", "16", "-g", "1"}).arguments);
}

TEST(Arguments, SkippedIterationsNeedStatisticsAndSomethingLeft) {
  EXPECT_EQ(exit_status({"-K", "1"}), 6);
  EXPECT_EQ(exit_status({"-I", "1", "-K", "5", "-n", "5"}), 6);
  EXPECT_EQ(exit_status({"-I", "1", "-K", "4", "-n", "5"}), 0);
}

TEST(Arguments, AnMpiIsMeasuredByBlockingCallsOfProcesses) {
  EXPECT_TRUE(parse({"--peer", "mpi"}).arguments->measures_mpi);
  EXPECT_EQ(exit_status({"--peer", "gloo"}), 6);
  EXPECT_EQ(exit_status({"--peer", "mpi", "-t", "2"}), 5);
  EXPECT_EQ(exit_status({"--peer", "mpi", "-y", "0"}), 5);
  EXPECT_EQ(exit_status({"--peer", "mpi", "--device", "cuda"}), 5);
}

TEST(Arguments, TheLimitIsMeasuredByBlockingCallsOnCpuMemoryThatAllRanksMap) {
  const auto limit = parse({"--peer", "limit", "-t", "2"}).arguments;
  EXPECT_TRUE(limit->measures_limit);
  EXPECT_FALSE(limit->measures_mpi);
  EXPECT_FALSE(limit->measures_fccl());
  EXPECT_TRUE(limit->peers_map_buffers());
  EXPECT_EQ(exit_status({"--peer", "limit", "-y", "0"}), 5);
  EXPECT_EQ(exit_status({"--peer", "limit", "--device", "cuda"}), 5);
  EXPECT_EQ(exit_status({"--peer", "limit", "--buffers", "arena"}), 5);
  EXPECT_EQ(exit_status({"--peer", "limit", "--init"}), 6);
  EXPECT_EQ(exit_status({"--peer", "limit", "--calibrate"}), 6);
}

TEST(Arguments, OfTwoPeersTheLastOneIsMeasured) {
  EXPECT_FALSE(parse({"--peer", "limit", "--peer", "mpi"}).arguments->measures_limit);
}

TEST(Arguments, BuffersRotateUnlessTheyAreToldNotTo) {
  EXPECT_TRUE(parse({}).arguments->rotates);
  EXPECT_TRUE(parse({"--rotate", "yes"}).arguments->rotates);
  EXPECT_FALSE(parse({"--rotate", "no"}).arguments->rotates);
  EXPECT_EQ(exit_status({"--rotate", "maybe"}), 6);
}

TEST(Arguments, InputsAreFreshlyWrittenIfThatIsAskedOfCpuMemory) {
  EXPECT_FALSE(parse({}).arguments->fresh);
  EXPECT_TRUE(parse({"--fresh"}).arguments->fresh);
  EXPECT_EQ(exit_status({"--fresh", "--device", "cuda"}), 5);
}

TEST(Arguments, ACsvFileHasAName) {
  EXPECT_EQ(parse({"--csv", "rows"}).arguments->csv_path, "rows");
  EXPECT_EQ(parse({"-F", "rows.csv"}).arguments->csv_path, "rows.csv");
  EXPECT_EQ(exit_status({"--csv", ""}), 6);
  EXPECT_EQ(exit_status({"-F", "4"}), 6);  // rccl-tests' --cache_flush
  EXPECT_EQ(exit_status({"--csv", "rows", "--calibrate"}), 6);
}

TEST(Arguments, StandardOutputIsForOneReport) {
  EXPECT_FALSE(parse({"-J", "a.json", "--csv", "rows"}).arguments->prints_report());
  EXPECT_TRUE(parse({"--json", "-"}).arguments->prints_report());
  EXPECT_TRUE(parse({"-J", "-", "-F", "rows.csv"}).arguments->prints_report());
  EXPECT_TRUE(parse({"--json", "a.json", "--csv", "-"}).arguments->prints_report());
  EXPECT_EQ(parse({"--json", "-", "--csv", "-"}).text,
            "--json - and --csv - both take standard output: name a file for one of them\n");
  EXPECT_EQ(exit_status({"--json", "-", "--csv", "-"}), 6);
}

TEST(Arguments, SkewIsMicroseconds) {
  EXPECT_EQ(parse({"--skew", "200"}).arguments->skew, 200);
  EXPECT_EQ(exit_status({"--skew", "-1"}), 6);
  EXPECT_EQ(exit_status({"--skew", "1ms"}), 6);
}

TEST(Arguments, HelpNamesEveryFlagAndMarksOurOwn) {
  const std::string text = parse({"--help"}).text;
  for (const Flag& flag : flags()) EXPECT_NE(text.find(std::string("--") + flag.name), std::string::npos) << flag.name;
  EXPECT_LT(text.find("--unalign"), text.find("FCCL's own"));
  EXPECT_GT(text.find("[-F,--csv"), text.find("FCCL's own"));
  for (const char* own : {"--odd", "--ulp", "--percentiles", "--peer", "--device"})
    EXPECT_GT(text.find(std::string("[") + own), text.find("FCCL's own"));
}

TEST(Arguments, HelpIsTextAndSuccess) {
  const Parsed parsed = parse({"-h"});
  EXPECT_FALSE(parsed.arguments);
  EXPECT_EQ(parsed.exit_code, ExitCode::success);
  EXPECT_EQ(parsed.text.rfind("USAGE: all_gather_perf\n", 0), 0u);
}

TEST(Arguments, TheFactorWinsOverTheIncrement) {
  Arguments arguments;
  EXPECT_EQ(next_size(arguments, 8), 8u + (1u << 20));
  arguments.step_factor = 4;
  EXPECT_EQ(next_size(arguments, 8), 32u);
}

TEST(Arguments, BuffersArePrivateOrInTheArenaAndNothingElse) {
  EXPECT_FALSE(parse({}).arguments->in_arena);
  EXPECT_FALSE(parse({"--buffers", "private"}).arguments->in_arena);
  EXPECT_TRUE(parse({"--buffers", "arena"}).arguments->in_arena);
  for (const char* other : {"", "arenas", "Arena", "1"}) EXPECT_FALSE(parse({"--buffers", other}).arguments) << other;
}

TEST(Arguments, BuffersInTheArenaAreOfFcclOnCpuMemoryAlone) {
  for (const std::vector<std::string>& other : {std::vector<std::string>{"--device", "cuda"}, {"--peer", "mpi"}}) {
    std::vector<std::string> words{"--buffers", "arena"};
    words.insert(words.end(), other.begin(), other.end());
    EXPECT_NE(parse(words).text.find("--buffers arena"), std::string::npos);
    EXPECT_FALSE(parse(words).arguments);
    words[1] = "private";
    EXPECT_TRUE(parse(words).arguments) << parse(words).text;
  }
}

}  // namespace
}  // namespace fccl::perf
