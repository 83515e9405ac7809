// Tries one name after another.
#include "new_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace fccl::perf {

NewFile make_file(const std::string& path, std::string_view ending) {
  // A descriptor of its own, so that stdout stays open when the file is closed.
  if (path == kStandardOutput) return {fdopen(dup(STDOUT_FILENO), "w"), "standard output"};
  // A path that is not a regular file, such as /dev/stdout or a pipe, is written to as it is.
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown))
    return {std::fopen(path.c_str(), "w"), path};
  NewFile made{std::fopen(path.c_str(), "wx"), path};
  const std::size_t end = path.size() - (path.ends_with(ending) ? ending.size() : 0);
  for (int number = 0; made.file == nullptr && errno == EEXIST; ++number) {
    made.path = path.substr(0, end) + "." + std::to_string(number) + path.substr(end);
    made.file = std::fopen(made.path.c_str(), "wx");
  }
  return made;
}

}  // namespace fccl::perf
