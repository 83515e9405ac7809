// Tests of fccl-info: what it prints, and how it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

namespace fccl::testing {
namespace {

struct Ended {
  int status = -1;
  std::string text;  // both streams
};

// `variables` as a shell sets them for one command.
Ended run_info(const std::string& arguments, const std::string& variables = "") {
  const std::string line = variables + " " FCCL_TEST_INFO " " + arguments + " 2>&1";
  FILE* output = popen(line.c_str(), "r");
  Ended ended;
  for (int c; output != nullptr && (c = std::fgetc(output)) != EOF;) ended.text += static_cast<char>(c);
  const int status = output == nullptr ? -1 : pclose(output);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  return ended;
}

const std::string kP4d = FCCL_TEST_TOPOLOGIES "/p4d.24xlarge.txt";

TEST(FcclInfo, describes_this_host_in_a_form_that_it_reads) {
  const Ended here = run_info("topology");
  ASSERT_EQ(here.status, 0) << here.text;
  const std::string path = ::testing::TempDir() + "fccl_info_here.txt";
  std::ofstream(path) << here.text;
  const Ended again = run_info("topology " + path);
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.text, here.text);
  std::remove(path.c_str());
}

TEST(FcclInfo, says_which_nics_serve_which_rank_and_how_far_they_are) {
  const Ended ended = run_info("rails " + kP4d);
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("rank 0 on p4d.24xlarge: efa_0 (same switch)\n"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("rank 7 on p4d.24xlarge: efa_3 (same switch)\n"), std::string::npos) << ended.text;
}

TEST(FcclInfo, reads_the_files_of_nccl) {
  const std::string path = ::testing::TempDir() + "fccl_info_nccl.xml";
  std::ofstream(path) << R"(<system version="1"><cpu numaid="0"><pci busid="0000:10:1b.0" class="0x020000"><nic>
    <net name="efa_0" dev="0" speed="100000"/></nic></pci></cpu></system>)";
  const Ended ended = run_info("topology " + path);
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("nic efa_0 speed 100Gbit/s pci 0000:10:1b.0 numa 0"), std::string::npos) << ended.text;
  std::remove(path.c_str());
}

TEST(FcclInfo, names_the_file_and_the_line_that_it_cannot_read) {
  const std::string path = ::testing::TempDir() + "fccl_info_wrong.txt";
  std::ofstream(path) << "fccl topology 1\nhost a\n  nic eth0 sped 3\n";
  const Ended ended = run_info("topology " + path);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.text.find(path), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("line 3"), std::string::npos) << ended.text;
  std::remove(path.c_str());
  for (const std::string unreadable : {"/no/such/file", "/"}) {
    const Ended ended_too = run_info("rails " + unreadable);
    EXPECT_EQ(ended_too.status, 1);
    EXPECT_NE(ended_too.text.find("the topology in " + unreadable + ": "), std::string::npos) << ended_too.text;
  }
}

TEST(FcclInfo, marks_the_settings_that_are_not_the_defaults) {
  const Ended ended = run_info("settings", "FCCL_SLOT_BYTES=1024 FCCL_TIMEOUT=");
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("* FCCL_SLOT_BYTES=1024\n"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("  FCCL_TIMEOUT=600\n"), std::string::npos) << ended.text;
  const Ended wrong = run_info("settings", "FCCL_SLOT_BYTES=many");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.text.find("FCCL_SLOT_BYTES=many"), std::string::npos) << wrong.text;
}

TEST(FcclInfo, shows_its_usage_to_whoever_asks_for_something_else) {
  EXPECT_EQ(run_info("--help").status, 0);
  for (const char* wrong : {"", "rails", "settings now", "topologies"}) {
    const Ended ended = run_info(wrong);
    EXPECT_EQ(ended.status, 2) << wrong;
    EXPECT_NE(ended.text.find("fccl-info topology"), std::string::npos) << ended.text;
    EXPECT_NE(ended.text.find(wrong), std::string::npos) << ended.text;
  }
}

}  // namespace
}  // namespace fccl::testing
