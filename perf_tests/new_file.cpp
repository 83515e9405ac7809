// Tries one name after the other.
#include "new_file.h"

#include <cerrno>

namespace fccl::perf {

NewFile make_file(const std::string& path) {
  NewFile made{std::fopen(path.c_str(), "wx"), path};
  for (int number = 0; made.file == nullptr && errno == EEXIST; ++number) {
    made.path = path + "." + std::to_string(number);
    made.file = std::fopen(made.path.c_str(), "wx");
  }
  return made;
}

}  // namespace fccl::perf
