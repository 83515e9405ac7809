// Checks the rules of the format line by line.
#include "unit/metrics_server/exposition.h"

#include <regex>
#include <set>
#include <sstream>

namespace fccl::core::metrics {
namespace {

bool belongs(const std::string& name, const std::string& family, const std::string& type) {
  if (type != "histogram") return name == family;
  return name == family + "_bucket" || name == family + "_sum" || name == family + "_count";
}

}  // namespace

Exposition read(const std::string& text) {
  static const std::regex head(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
  static const std::regex sample(
      R"(([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\} ([-+0-9.e]+|[+-]Inf|NaN))");
  Exposition read;
  std::set<std::string> families;
  std::string family, type;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, head) && parts[1] == "HELP") {
      family = parts[2];
      type.clear();
      if (!families.insert(family).second) read.fault = "twice: " + line;
    } else if (std::regex_match(line, parts, head)) {
      type = parts[3];
      if (parts[2] != family || !std::set<std::string>{"counter", "gauge", "histogram"}.contains(type)) read.fault = line;
    } else if (std::regex_match(line, parts, sample)) {
      if (type.empty() || !belongs(parts[1], family, type)) read.fault = "of another family: " + line;
      if (!read.samples.emplace(parts[1].str() + "{" + parts[2].str() + "}", std::stod(parts[3])).second)
        read.fault = "twice: " + line;
    } else {
      read.fault = "no line of the format: " + line;
    }
    if (!read.fault.empty()) return read;
  }
  if (!text.ends_with('\n')) read.fault = "its last line has no end";
  return read;
}

}  // namespace fccl::core::metrics
