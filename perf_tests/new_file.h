// Makes the file of a report, without overwriting an existing file.
#pragma once

#include <cstdio>
#include <string>

namespace fccl::perf {

struct NewFile {
  std::FILE* file = nullptr;  // the caller's; null: errno says why it could not be made
  std::string path;           // path of the file, or of the attempt that failed
};

// If `path` exists, a number is appended to the name: .0, .1 and so on.
NewFile make_file(const std::string& path);

}  // namespace fccl::perf
