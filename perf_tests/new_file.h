// Makes the file of a report, without overwriting an existing file.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace fccl::perf {

struct NewFile {
  std::FILE* file = nullptr;  // the caller's; null: errno says why it could not be made
  std::string path;           // path of the file, or of the attempt that failed
};

// The path of what goes to standard output.
constexpr char kStandardOutput[] = "-";

// If `path` exists, a number is added to the name, .0, .1 and so on: at its end, or before `ending` if the name ends so.
NewFile make_file(const std::string& path, std::string_view ending = "");

}  // namespace fccl::perf
