// Tests available memory: the machine's own account, and the limits of control groups.
#include "os/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fccl::core {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// A root folder with the files of a machine; its destructor removes it.
class Machine {
 public:
  Machine() {
    std::string pattern = ::testing::TempDir() + "machineXXXXXX";
    root_ = mkdtemp(pattern.data());
    write("proc/meminfo",
          "MemTotal:       24684084 kB\nMemFree:        102400 kB\nMemAvailable:   1024000 kB\nBuffers: 7 kB\n");
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  AvailableMemory available() const { return available_memory(root_.string()); }
  std::string path(const std::string& path) const { return (root_ / path).string(); }

 private:
  std::filesystem::path root_;
};

TEST(AvailableMemory, without_control_groups_is_what_the_machine_has) {
  const Machine machine;
  EXPECT_EQ(machine.available().bytes, 1000 * kMiB);
  EXPECT_EQ(machine.available().limited_by, machine.path("proc/meminfo"));
}

TEST(AvailableMemory, of_a_group_of_version_2_is_its_limit_less_what_cannot_be_dropped) {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/pod/worker\n");
  machine.write("sys/fs/cgroup/pod/worker/memory.max", std::to_string(100 * kMiB));
  machine.write("sys/fs/cgroup/pod/worker/memory.current", std::to_string(90 * kMiB));
  machine.write("sys/fs/cgroup/pod/worker/memory.stat", "anon 5\ninactive_file " + std::to_string(20 * kMiB) +
                                                            "\nactive_file " + std::to_string(10 * kMiB) + "\nshmem 9\n");
  EXPECT_EQ(machine.available().bytes, 40 * kMiB);
  EXPECT_EQ(machine.available().limited_by, machine.path("sys/fs/cgroup/pod/worker/memory.max"));
}

TEST(AvailableMemory, of_a_group_of_version_1_is_found_beside_other_controllers) {
  const Machine machine;
  machine.write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/job\n3:cpuset:/job\n0::/\n");
  machine.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(64 * kMiB));
  machine.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(60 * kMiB));
  machine.write("sys/fs/cgroup/memory/job/memory.stat",
                "inactive_file 0\ntotal_inactive_file " + std::to_string(4 * kMiB) + "\n");
  EXPECT_EQ(machine.available().bytes, 8 * kMiB);
}

TEST(AvailableMemory, is_limited_by_the_groups_around_its_own) {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/pod/worker\n");
  machine.write("sys/fs/cgroup/pod/worker/memory.max", "max\n");
  machine.write("sys/fs/cgroup/pod/worker/memory.current", "5\n");
  machine.write("sys/fs/cgroup/pod/memory.max", std::to_string(30 * kMiB));
  machine.write("sys/fs/cgroup/pod/memory.current", std::to_string(10 * kMiB));
  EXPECT_EQ(machine.available().bytes, 20 * kMiB);
}

TEST(AvailableMemory, in_a_container_that_sees_only_its_own_group_is_limited_by_it) {
  const Machine machine;
  machine.write("proc/self/cgroup", "4:memory:/docker/0123\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(30 * kMiB));
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(10 * kMiB));
  EXPECT_EQ(machine.available().bytes, 20 * kMiB);
}

TEST(AvailableMemory, of_a_group_over_its_limit_is_nothing) {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/\n");
  machine.write("sys/fs/cgroup/memory.max", "1000");
  machine.write("sys/fs/cgroup/memory.current", "2000");
  EXPECT_EQ(machine.available().bytes, 0U);
}

TEST(AvailableMemory, that_nobody_tells_is_without_limit) { EXPECT_EQ(available_memory("/nowhere").bytes, UINT64_MAX); }

TEST(AvailableMemory, of_this_machine_is_told) { EXPECT_FALSE(available_memory().limited_by.empty()); }

TEST(TakePages, gives_every_page_of_a_range_its_memory_and_leaves_the_bytes) {
  if (madvise(nullptr, 0, kPopulateWrite) != 0) GTEST_SKIP() << "Linux before 5.14 has no MADV_POPULATE_WRITE";
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = 4 * page;
  const int file = memfd_create("taken", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
  auto* memory = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
  memory[page + 64] = std::byte{7};
  take_pages(memory + page + 64, page);
  std::array<unsigned char, 4> resident{};
  ASSERT_EQ(mincore(memory, bytes, resident.data()), 0);
  EXPECT_EQ(resident, (std::array<unsigned char, 4>{0, 1, 1, 0}));
  EXPECT_EQ(memory[page + 64], std::byte{7});
  munmap(memory, bytes);
  close(file);
}

}  // namespace
}  // namespace fccl::core
