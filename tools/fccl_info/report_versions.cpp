// Asks each library for its version.
#include "fccl_info/report_versions.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <sys/utsname.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>

#include "fccl/fccl.h"
#include "fccl_info/small_file.h"
#include "os/processors.h"

namespace fccl::core {
namespace {

// As the loader finds it for the plug-in; a process of a job may have another one, which its libraries show.
std::string version_of_libfabric() {
  constexpr const char* kName = "libfabric.so.1";
  void* library = ::dlopen(kName, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return fmt::format("libfabric: {}\n", ::dlerror());
  void* function = ::dlsym(library, "fi_version");
  Dl_info place{};
  if (function == nullptr || ::dladdr(function, &place) == 0) return fmt::format("libfabric: {} has no fi_version\n", kName);
  const uint32_t version = reinterpret_cast<uint32_t (*)()>(function)();
  return fmt::format("libfabric {}.{}, {}\n", version >> 16, version & 0xffff, place.dli_fname);
}

std::string version_of_hwloc() {
  const unsigned version = ::hwloc_get_api_version();
  return fmt::format("hwloc, interface {}.{}.{}\n", version >> 16, version >> 8 & 0xff, version & 0xff);
}

std::string kernel() {
  utsname names{};
  ::uname(&names);
  return fmt::format("kernel {} {} {}\n", names.sysname, names.release, names.machine);
}

std::string processor() {
  const std::string model = line_with("/proc/cpuinfo", "model name");
  const size_t colon = model.find(": ");
  return fmt::format("processor {}; {} of {} may be used here\n",
                     colon == std::string::npos ? "of an unknown model" : model.substr(colon + 2), allowed_processors().count(),
                     std::thread::hardware_concurrency());
}

// Reads what is installed, without importing it: torch takes seconds.
std::string python_packages() {
  constexpr const char* kAsk =
      "timeout 10 python3 -c '\n"
      "import sys\n"
      "from importlib.metadata import PackageNotFoundError, version\n"
      "print(\"python\", sys.version.split()[0], \"in\", sys.executable)\n"
      "for name in (\"torch\", \"fccl\", \"fccl-sagemaker\"):\n"
      "    try:\n"
      "        print(\" \", name, version(name))\n"
      "    except PackageNotFoundError:\n"
      "        print(\" \", name, \"is not installed there\")\n"
      "' 2>/dev/null";
  std::string text;
  FILE* output = ::popen(kAsk, "r");
  for (int c; output != nullptr && (c = std::fgetc(output)) != EOF;) text += static_cast<char>(c);
  if (output != nullptr) ::pclose(output);
  return text.empty() ? "no python3 answers\n" : text;
}

}  // namespace

std::string versions() {
  return fmt::format("fccl {}.{}.{}, this fccl-info\n", FCCL_MAJOR, FCCL_MINOR, FCCL_PATCH) + version_of_libfabric() +
         version_of_hwloc() + kernel() + processor() + python_packages();
}

}  // namespace fccl::core
