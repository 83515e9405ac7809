// Builds the identity from the boot id, the host name and the numbers of namespaces.
#include "discovery/host_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace fccl::core {
namespace {

std::string first_line(const char* path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

// Returns a text such as "ipc:[4026531839]"; the number identifies the namespace.
std::string link_target(const char* path) {
  std::array<char, 64> target{};
  const ssize_t size = ::readlink(path, target.data(), target.size());
  return size < 0 ? std::string() : std::string(target.data(), static_cast<size_t>(size));
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

std::string host_identity(const std::string& override_text) {
  const std::string reach = link_target("/proc/self/ns/pid") + " " + link_target("/proc/self/ns/net");
  if (!override_text.empty()) return fmt::format("FCCL_HOST_ID {} {}", override_text, reach);
  return fmt::format("{} {} {} {}", first_line("/proc/sys/kernel/random/boot_id"), host_name(),
                     link_target("/proc/self/ns/ipc"), reach);
}

}  // namespace fccl::core
