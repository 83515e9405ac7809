// Tries one name after another.
#include "new_file.h"

#include <cerrno>
#include <filesystem>

namespace fccl::perf {

NewFile make_file(const std::string& path) {
  // A path that is not a regular file, such as /dev/stdout or a pipe, is written to as it is.
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown))
    return {std::fopen(path.c_str(), "w"), path};
  NewFile made{std::fopen(path.c_str(), "wx"), path};
  for (int number = 0; made.file == nullptr && errno == EEXIST; ++number) {
    made.path = path + "." + std::to_string(number);
    made.file = std::fopen(made.path.c_str(), "wx");
  }
  return made;
}

}  // namespace fccl::perf
