// What a run prints: the lines and columns of nccl-tests, so that its parsers read ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"

namespace fccl::perf {

// Who runs one rank and where; plain bytes, so that MPI can gather them.
struct RankInfo {
  int rank;
  int process_id;
  char host[64];
  char processor[64];
};

// One call out of place or in place.
struct Measurement {
  double seconds;
  double algorithm_bandwidth;  // bytes of the size column per second
  double bus_bandwidth;
  std::optional<std::uint64_t> wrong;  // elements, over all ranks; none if unchecked
};

struct Row {
  std::size_t bytes;
  std::size_t count;
  std::string_view type;
  std::string_view op;
  int root;
  Measurement out_of_place;
  Measurement in_place;
};

// Prints a run to `out`, which the caller keeps open, and remembers what its last lines need. Used by one thread of one rank.
class Report {
 public:
  Report(std::FILE* out, std::string program) : out_(out), program_(std::move(program)) {}

  void begin(const Arguments& arguments, const std::vector<RankInfo>& ranks);
  void reduced_max_bytes(std::size_t bytes);
  void header();
  void row(const Row& row);
  // `bad_checks` counts the (rank, check) pairs that saw a wrong element.
  void end(std::uint64_t bad_checks);

 private:
  void measurement(const Measurement& measurement);

  std::FILE* out_;
  std::string program_;
  double bus_bandwidth_sum_ = 0;
  std::size_t measurements_ = 0;
};

// A number of at most `width` characters, as precise as they allow.
std::string fixed_width(double value, int width);

}  // namespace fccl::perf
