// Reads the files in which the kernel tells of memory and its limits.
#include "system/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>

namespace fccl {
namespace {

// The number that is all of a file; none where there is none, as in "max".
std::optional<size_t> read_number(const std::string& path) {
  std::ifstream file(path);
  size_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The number behind `key` at the start of a line.
std::optional<size_t> read_number(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string word; file >> word; file.ignore(SIZE_MAX >> 1, '\n'))
    if (size_t number = 0; word == key && file >> number) return number;
  return std::nullopt;
}

// What names the files of one version of control groups.
struct Version {
  const char* folder;
  const char* limit;
  const char* used;
  const char* cached;  // a key of memory.stat
};
constexpr Version kFirst{"sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
constexpr Version kSecond{"sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};

// The least that a group and those above it leave.
size_t left_by_groups(const std::string& root, const Version& version, std::string group) {
  size_t left = SIZE_MAX;
  for (;; group.erase(group.rfind('/'))) {
    const std::string folder = root + version.folder + group;
    const auto limit = read_number(folder + version.limit);
    const auto used = read_number(folder + version.used);
    if (limit && used) {
      const size_t needed = *used - std::min(*used, read_number(folder + "/memory.stat", version.cached).value_or(0));
      left = std::min(left, *limit - std::min(*limit, needed));
    }
    if (group.empty()) return left;
  }
}

}  // namespace

size_t available_memory(const std::string& root) {
  size_t available = SIZE_MAX;
  if (const auto kib = read_number(root + "proc/meminfo", "MemAvailable:")) available = *kib * 1024;
  // Lines "NUMBER:CONTROLLERS:GROUP"; version 2 has the number 0 and names no controllers.
  std::ifstream groups(root + "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers == ",,") available = std::min(available, left_by_groups(root, kSecond, group));
    if (controllers.find(",memory,") != std::string::npos) available = std::min(available, left_by_groups(root, kFirst, group));
  }
  return available;
}

}  // namespace fccl
