// Reads files whose size the kernel does not tell.
#include "fccl_info/small_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace fccl::core {

std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string line_with(const std::string& path, std::string_view begin) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(begin)) return line;
  return "";
}

std::string printable(std::string text) {
  std::ranges::replace_if(text, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return text;
}

}  // namespace fccl::core
