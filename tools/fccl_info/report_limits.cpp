// Asks the kernel for limits of descriptors, of memory and of what a process may see of others.
#include "fccl_info/report_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <string_view>

#include "fccl_info/small_file.h"

namespace fccl::core {
namespace {

std::string number_or_none(rlim_t number) { return number == RLIM_INFINITY ? "none" : fmt::format("{}", number); }

std::string limit_of(const char* words, __rlimit_resource resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return fmt::format("{}: {}, at most {}\n", words, number_or_none(limit.rlim_cur), number_or_none(limit.rlim_max));
}

std::string room_in(const char* folder) {
  struct statvfs room{};
  if (::statvfs(folder, &room) != 0) return fmt::format("{}: is not there\n", folder);
  return fmt::format("{}: {} MiB, {} MiB free\n", folder, room.f_blocks * room.f_frsize >> 20,
                     room.f_bavail * room.f_frsize >> 20);
}

std::string file_line(const char* path) {
  std::string text = text_in(path);
  while (text.ends_with('\n')) text.pop_back();
  return fmt::format("{}: {}\n", path, text.empty() ? "is not there" : printable(std::move(text)));
}

// Names the limits of the control groups above this process; version 1 has one more folder, memory, and other names.
std::string memory_of_control_group() {
  std::string text;
  const std::string second = line_with("/proc/self/cgroup", "0::");
  std::string folder = second.size() > 3 ? second.substr(3) : "/";
  for (;; folder.resize(folder.rfind('/'))) {
    const std::string path = "/sys/fs/cgroup" + (folder == "/" ? "" : folder) + "/memory.max";
    if (const std::string most = text_in(path); !most.empty()) text += fmt::format("{}: {}", path, most);
    if (folder.empty() || folder == "/") break;
  }
  const std::string groups = text_in("/proc/self/cgroup");
  if (const size_t first = groups.find(":memory:"); first != std::string::npos) {
    const size_t begin = first + std::string_view(":memory:").size();
    for (const std::string& below : {groups.substr(begin, groups.find('\n', begin) - begin), std::string()}) {
      const std::string path = fmt::format("/sys/fs/cgroup/memory{}/memory.limit_in_bytes", below);
      if (const std::string most = text_in(path); !most.empty()) text += fmt::format("{}: {}", path, most);
    }
  }
  return text.empty() ? "memory of the control group: no limit is seen\n" : text;
}

}  // namespace

std::string limits_here() {
  std::string text = limit_of("locked memory, bytes (ulimit -l shows KiB)", RLIMIT_MEMLOCK) +
                     limit_of("descriptors (ulimit -n)", RLIMIT_NOFILE) +
                     limit_of("addresses, bytes (ulimit -v shows KiB)", RLIMIT_AS) +
                     limit_of("size of a file, bytes (ulimit -f)", RLIMIT_FSIZE) + room_in("/dev/shm");
  for (const char* each : {"MemTotal:", "MemAvailable:"}) text += line_with("/proc/meminfo", each) + "\n";
  text += memory_of_control_group();
  for (const char* each : {"/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/net/core/optmem_max"}) text += file_line(each);
  return text;
}

}  // namespace fccl::core
