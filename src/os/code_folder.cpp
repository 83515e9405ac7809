// Asks the loader first, then the kernel's list of mappings.
#include "os/code_folder.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fccl::core {
namespace {

namespace fs = std::filesystem;

// Returns the path by which the loader opened the file, with symbolic links kept; empty for the program itself.
fs::path file_of_loader(const void* address) {
  Dl_info found{};
  link_map* object = nullptr;
  if (::dladdr1(address, &found, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 || object == nullptr) return {};
  return object->l_name;
}

// Returns the path that the kernel shows for the mapping, which is always absolute.
fs::path file_of_kernel(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    words >> std::hex >> begin >> dash >> end;
    const auto place = reinterpret_cast<uintptr_t>(address);
    if (place < begin || place >= end) continue;
    const size_t path = line.find('/');
    return path == std::string::npos ? fs::path() : fs::path(line.substr(path));
  }
  return {};
}

}  // namespace

std::string folder_of_code(const void* address) {
  const fs::path loaded = file_of_loader(address);
  return (loaded.is_absolute() ? loaded : file_of_kernel(address)).parent_path().string();
}

}  // namespace fccl::core
