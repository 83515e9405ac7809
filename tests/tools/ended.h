// Ended: how a run of fccl-info ended, and what it said.
#pragma once

#include <string>

namespace fccl::core::testing {

struct Ended {
  int status = -1;
  std::string text;  // both streams
};

// Runs a line of a shell.
Ended run_line(const std::string& line);
// `variables` as a shell sets them for one command.
Ended run_info(const std::string& arguments, const std::string& variables = "");

}  // namespace fccl::core::testing
