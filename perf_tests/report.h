// The reports of a run: a table on stdout with the lines and columns of nccl-tests, and on request its JSON file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "fccl/fccl.h"
#include "launch/team.h"
#include "skew.h"
#include "statistics.h"

namespace fccl::perf {

// The times of single iterations, in seconds.
struct Iterations {
  Statistics statistics;  // over `times` without the first `skipped`
  int skipped = 0;
  std::vector<double> times;                       // the greatest of all processes, per iteration
  std::vector<std::vector<double>> process_times;  // by process: the greatest of its threads
};

// One call out of place or in place.
struct Measurement {
  double seconds;
  double algorithm_bandwidth;  // bytes of the size column per second
  double bus_bandwidth;
  std::optional<std::uint64_t> wrong = {};  // wrong elements over all ranks; none if unchecked
  std::optional<double> ulp = {};           // largest error; none if it was not asked for, or if no result is rounded
  std::optional<Iterations> iterations = {};
  std::optional<Skew> skew = {};
  std::string_view path = {};  // by which most of the calls went, as metrics name it; empty if the library does not tell
  double copied = 0;           // bytes of a call on CUDA memory that a rank's processor read, the mean of all ranks
  double queued_seconds = 0;   // time that ranks waited for a processor in the timed calls, over all ranks
};

struct Row {
  std::size_t bytes;
  std::size_t count;
  std::string_view type;
  std::string_view op;
  int root;
  Measurement out_of_place;
  std::optional<Measurement> in_place = {};  // none if the collective does not work in place
};

// The facts in the head of a report.
struct Beginning {
  const Arguments& arguments;
  const std::vector<RankInfo>& ranks;
  std::string library;                     // empty: FCCL; else the name of the measured peer
  std::vector<std::string> left_out = {};  // types and operators that the peer does not have
  std::string cuda_path = "auto";          // the value of FCCL_CUDA_PATH
};

// Returns "threads", "processes" or "threads of processes".
const char* kinds_of_ranks(const Beginning& beginning);

// The facts in the foot of a report.
struct Ending {
  std::uint64_t bad_checks = 0;              // (rank, check) pairs that saw a wrong element
  std::optional<double> min_bandwidth = {};  // GB/s that the mean bus bandwidth must reach, less a tenth
  std::string memory = {};                   // empty: not asked for
  std::string arena = {};                    // empty: not asked for, or the arena is not used
  std::string slots = {};                    // empty: not asked for, or the memory is the host's
  std::vector<std::string> init = {};        // empty: not asked for
};

// Computes the mean of the bus bandwidths of all cells, in GB/s.
class BandwidthMean {
 public:
  void add(const Row& row) {
    add(row.out_of_place);
    if (row.in_place) add(*row.in_place);
  }
  double value() const { return cells_ == 0 ? 0 : sum_ / cells_; }
  bool reaches(std::optional<double> minimum) const { return !minimum || value() >= *minimum * 0.9; }

 private:
  void add(const Measurement& measurement) {
    sum_ += measurement.bus_bandwidth / 1e9;
    ++cells_;
  }

  double sum_ = 0;
  int cells_ = 0;
};

// Computes how much of the ranks' time in all cells they waited for a processor.
class QueuedShare {
 public:
  // `calls`: timed calls of a cell, over all ranks.
  void add(const Row& row, double calls) {
    add(row.out_of_place, calls);
    if (row.in_place) add(*row.in_place, calls);
  }
  double percent() const { return of_ranks_ > 0 ? std::min(100.0, 100 * queued_ / of_ranks_) : 0; }

 private:
  void add(const Measurement& measurement, double calls) {
    queued_ += measurement.queued_seconds;
    of_ranks_ += measurement.seconds * calls;
  }

  double queued_ = 0;
  double of_ranks_ = 0;
};

// Prints to `out`, which the caller keeps open. One thread of one rank uses it.
class Table {
 public:
  Table(std::FILE* out, std::string program, const Arguments& arguments)
      : out_(out), program_(std::move(program)), arguments_(arguments) {}

  void begin(const Beginning& beginning);
  void reduced_max_bytes(std::size_t bytes);
  void header();
  void row(const Row& row);
  void end(const Ending& ending);
  void error(std::string_view message);
  bool reaches(std::optional<double> min_bandwidth) const { return mean_.reaches(min_bandwidth); }

 private:
  void titles(bool units);
  void measurement(const Measurement& measurement);
  void no_measurement();

  std::FILE* out_;
  std::string program_;
  const Arguments& arguments_;
  BandwidthMean mean_;
  QueuedShare queued_;
  double calls_ = 0;                // timed calls of a cell, over all ranks
  bool rounds_to_nothing_ = false;  // a row has size 0 that was not asked for
};

// Formats a number in at most `width` characters, as precisely as they allow.
std::string fixed_width(double value, int width);
// Returns the local time as nccl-tests writes it.
std::string time_now();
// Returns "1.50 MB": three digits and a binary unit.
std::string memory_text(double bytes);
// Describes an arena.
std::string text_of(const fcclMemUsage_t& usage);
// Describes the slots by which GPUs give each other bytes.
std::string text_of_slots(const fcclMemUsage_t& usage);

}  // namespace fccl::perf
