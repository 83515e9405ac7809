// The JSON file of -J: version 3 of nccl-tests' format, with FCCL's additions.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report.h"

namespace fccl::perf {

// A file that did not exist before: the wanted path, or the first free one of path.0, path.1 and so on. It writes nothing until
// `end` or `fail`; one thread of one rank uses it.
class JsonReport {
 public:
  // Opens the file and reports that on `out`, as nccl-tests does; it also reports a failure.
  JsonReport(const std::string& path, std::FILE* out);
  JsonReport(const JsonReport&) = delete;
  JsonReport& operator=(const JsonReport&) = delete;
  ~JsonReport();

  void begin(const Beginning& beginning, const std::vector<std::string>& command, const std::vector<std::string>& environment);
  void row(const Row& row, std::string_view program);
  void end(const Ending& ending);
  // Ends the file with the results so far and the reason why the run stopped.
  void fail(std::string_view message);

 private:
  void write();

  std::FILE* file_ = nullptr;
  nlohmann::ordered_json document_;
  BandwidthMean mean_;
  bool shows_iterations_ = false;
  bool shows_cpu_time_ = false;
  std::optional<std::string> cuda_path_{};  // none on CPU memory
  bool stages_ = false;                     // calls on CUDA memory run as a whole in host memory
  int iterations_ = 0;
};

}  // namespace fccl::perf
