// Tests of what the kernel's files say about memory.
#include "system/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace fccl {
namespace {

// A folder with the files that a kernel would show, removed at the end.
class Memory : public ::testing::Test {
 protected:
  Memory() { std::filesystem::remove_all(root_); }
  ~Memory() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  size_t available() const { return available_memory(root_); }

 private:
  const std::string root_ =
      ::testing::TempDir() + "memory_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
};

TEST_F(Memory, of_the_host_is_what_it_says_is_available) {
  write("proc/meminfo", "MemTotal:       24000000 kB\nMemFree:        100 kB\nMemAvailable:   2000 kB\n");
  EXPECT_EQ(available(), 2000 * 1024);
}

TEST_F(Memory, is_unlimited_where_no_file_says_anything) { EXPECT_EQ(available(), SIZE_MAX); }

TEST_F(Memory, of_a_control_group_is_its_limit_less_what_is_used_and_not_cached) {
  write("proc/meminfo", "MemAvailable:   2000000 kB\n");
  write("proc/self/cgroup", "0::/pod\n");
  write("sys/fs/cgroup/pod/memory.max", "1000000\n");
  write("sys/fs/cgroup/pod/memory.current", "700000\n");
  write("sys/fs/cgroup/pod/memory.stat", "anon 500000\nfile 200000\ninactive_file 150000\n");
  EXPECT_EQ(available(), 450'000);
}

TEST_F(Memory, of_a_control_group_is_limited_by_those_above_it) {
  write("proc/self/cgroup", "0::/slice/pod\n");
  write("sys/fs/cgroup/slice/pod/memory.max", "max\n");
  write("sys/fs/cgroup/slice/pod/memory.current", "1\n");
  write("sys/fs/cgroup/slice/memory.max", "5000\n");
  write("sys/fs/cgroup/slice/memory.current", "6000\n");
  EXPECT_EQ(available(), 0);
}

TEST_F(Memory, of_a_control_group_of_version_1_is_its_limit_less_what_is_used) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/pod\n");
  write("sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "9000\n");
  write("sys/fs/cgroup/memory/pod/memory.usage_in_bytes", "4000\n");
  EXPECT_EQ(available(), 5000);
}

TEST_F(Memory, of_this_machine_is_known) {
  EXPECT_GT(available_memory(), size_t{1} << 20);
  EXPECT_LT(available_memory(), size_t{1} << 60);
}

}  // namespace
}  // namespace fccl
