// Reads what /proc tells of a process. Values of variables pass one door, shown().
#include "fccl_info/report_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "fccl_info/small_file.h"
#include "settings/settings.h"

namespace fccl::core {
namespace {

// Variables that begin so are FCCL's, or those of libraries below it.
constexpr std::string_view kBegins[] = {"FCCL_", "NCCL_", "GLOO_", "FI_", "TORCH_", "MASTER_ADDR=", "OMP_NUM_THREADS="};
// A setting that stands for who somebody is: a user may take a secret for it.
constexpr std::string_view kIdentity = "FCCL_HOST_ID";
constexpr size_t kLongest = 500;

bool is_setting(std::string_view name) {
  return std::ranges::any_of(every_setting(), [&](const Setting& setting) { return name == setting.variable; });
}

// A value is shown only if FCCL's table of settings has its variable: any other one may hold a unique id or a key.
std::string shown(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  const bool is_shown = is_setting(name) && name != kIdentity;
  return printable(is_shown ? std::string(variable.substr(0, kLongest)) : fmt::format("{} is set", name.substr(0, kLongest)));
}

// `process` is a number, or "self".
std::string variables_of(const std::string& process) {
  std::istringstream all(text_in(fmt::format("/proc/{}/environ", process)));
  std::set<std::string> lines;
  for (std::string variable; std::getline(all, variable, '\0');)
    if (std::ranges::any_of(kBegins, [&](std::string_view begin) { return variable.starts_with(begin); }))
      lines.insert(shown(variable));
  std::string text;
  for (const std::string& line : lines) text += fmt::format("  {}\n", line);
  return text;
}

bool is_of_interest(std::string_view file) {
  constexpr std::string_view kLibraries[] = {"libfccl", "libfabric", "libtorch_cpu", "libnccl", "libcuda.so"};
  return std::ranges::any_of(kLibraries, [&](std::string_view begin) { return file.starts_with(begin); });
}

std::string libraries_of(int64_t process) {
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && is_of_interest(std::string_view(line).substr(line.rfind('/') + 1)))
      files.insert(line.substr(path));
  }
  std::string text;
  for (const std::string& file : files) text += fmt::format("  {}\n", printable(file));
  return text;
}

std::string limits_of(int64_t process) {
  std::string text;
  for (const char* each : {"Max locked memory", "Max open files", "Max address space"})
    text += fmt::format("  {}\n", line_with(fmt::format("/proc/{}/limits", process), each));
  return text;
}

}  // namespace

std::string variables_here() {
  const std::string variables = variables_of("self");
  const Result<Settings> settings = read_settings();
  return (variables.empty() ? "  none\n" : variables) +
         (settings ? "" : fmt::format("FCCL refuses them: {}\n", settings.error().message));
}

std::string processes_of(const Look& look) {
  std::string text;
  for (const Job& job : look.host.jobs)
    for (const metrics::PageCopy& page : job) {
      std::string name = text_in(fmt::format("/proc/{}/comm", page->process));
      while (name.ends_with('\n')) name.pop_back();
      text += fmt::format("process {}, {}\n", page->process, printable(std::move(name))) + libraries_of(page->process) +
              variables_of(fmt::format("{}", page->process)) + limits_of(page->process);
    }
  return text.empty() ? "none has a communicator of FCCL now; a report tells most while the ranks run\n" : text;
}

}  // namespace fccl::core
