// Reads /proc and the files of the control groups.
#include "os/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace fccl::core {
namespace {

namespace fs = std::filesystem;

// The file names of one version of control groups.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* inactive_pages;
  const char* active_pages;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file", "active_file"};

// Returns the number at the beginning of a file; nothing if the file is absent or says something else, such as "max".
std::optional<uint64_t> number_in(const fs::path& path) {
  uint64_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

// Returns the number after a key, in a file of lines "key number ...".
std::optional<uint64_t> number_of(std::string_view key, const fs::path& path) {
  std::ifstream file(path);
  for (std::string word, rest; file >> word; std::getline(file, rest)) {
    uint64_t number = 0;
    if (word == key && file >> number) return number;
  }
  return std::nullopt;
}

void take_group(const fs::path& group, const GroupFiles& files, AvailableMemory& least) {
  const auto limit = number_in(group / files.limit), used = number_in(group / files.used);
  if (!limit || !used) return;
  const fs::path statistics = group / "memory.stat";
  const uint64_t pages =
      number_of(files.inactive_pages, statistics).value_or(0) + number_of(files.active_pages, statistics).value_or(0);
  const uint64_t kept = *used - std::min(*used, pages);
  const uint64_t left = *limit - std::min(*limit, kept);
  if (left < least.bytes) least = {left, (group / files.limit).string()};
}

// All groups around a group limit it, too. In a container the path may be the host's; then only the outermost folder exists.
void take_groups(const fs::path& mount, const fs::path& path, const GroupFiles& files, AvailableMemory& least) {
  for (fs::path group = path.relative_path();; group = group.parent_path()) {
    take_group(mount / group, files, least);
    if (group.empty()) return;
  }
}

}  // namespace

AvailableMemory available_memory(const std::string& root) {
  AvailableMemory least;
  const fs::path machine = fs::path(root) / "proc/meminfo", groups = fs::path(root) / "sys/fs/cgroup";
  if (const auto kib = number_of("MemAvailable:", machine)) least = {*kib * 1024, machine.string()};
  std::ifstream memberships(fs::path(root) / "proc/self/cgroup");
  std::string number, controllers, path;
  while (std::getline(memberships, number, ':') && std::getline(memberships, controllers, ':') &&
         std::getline(memberships, path)) {
    if (controllers.empty()) take_groups(groups, path, kVersion2, least);
    if (controllers == "memory") take_groups(groups / "memory", path, kVersion1, least);
  }
  return least;
}

size_t longest_file() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

void take_pages(std::byte* begin, size_t bytes) {
  const size_t before = reinterpret_cast<uintptr_t>(begin) % static_cast<size_t>(sysconf(_SC_PAGESIZE));
  (void)madvise(begin - before, before + bytes, kPopulateWrite);
}

}  // namespace fccl::core
