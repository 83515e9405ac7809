// The command line of the perf binaries: the flags of nccl-tests, and FCCL's own additions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "exit_code.h"
#include "new_file.h"
#include "uneven.h"

namespace fccl::perf {

// -a: selects which of the ranks' times the table shows. The numbers are those of the flag.
enum class Average { rank_0 = 0, mean = 1, minimum = 2, maximum = 3 };

// -z: selects how calls are kept apart. The numbers are those of the flag.
enum class Blocking { none = 0, wait_and_barrier = 1, wait = 2, untimed_barrier = 3 };

// --device: selects the memory of the buffers.
enum class DeviceKind : std::uint8_t { cpu, cuda };

struct Arguments {
  DeviceKind device = DeviceKind::cpu;
  int threads = 1;
  int gpus = 1;  // -g, per thread of nccl-tests; here each has a thread of its own
  std::size_t min_bytes = 32 << 20;
  std::size_t max_bytes = 32 << 20;
  std::size_t step_bytes = 1 << 20;
  int step_factor = 1;
  int iterations = 20;
  int aggregated = 1;
  int warmup = 1;
  int cycles = 1;  // 0: without end
  bool parallel_init = false;
  bool per_iteration = false;
  int skipped = 0;  // leading iterations that the statistics of -I leave out
  int checks = 1;
  std::string op = "sum";      // a name of the table of operators, or "all"
  std::string type = "float";  // a name of the table of element types, or "all"
  int root = 0;                // -1: all in turn
  Blocking blocking = Blocking::none;
  std::optional<bool> stream_null;  // none: what is usual for the memory
  int timeout_seconds = 0;          // 0: the library's
  bool cpu_time = false;
  bool timestamps = false;
  std::string json_path;  // empty: no JSON file; "-": standard output
  Average average = Average::mean;
  bool memory = false;
  int unaligned_elements = 0;
  // FCCL's own additions.
  bool odd = false;
  std::optional<Uneven> uneven;  // none: linear, where the collective has uneven counts
  bool ulp = false;
  bool percentiles = false;
  bool measures_mpi = false;
  bool measures_limit = false;
  bool calibrates = false;
  bool in_arena = false;  // buffers lie in memory that peers map
  bool init = false;      // shows what init took
  bool rotates = true;    // calls use different buffers in turn
  bool fresh = false;     // inputs are written before each timed call
  int skew = 0;           // microseconds by which ranks arrive apart, at most; 0: not measured
  std::string csv_path;   // empty: no CSV file; "-": standard output

  // A page of such a buffer costs each peer a fault when it first reads it.
  bool peers_map_buffers() const { return in_arena || measures_limit; }
  bool measures_fccl() const { return !measures_mpi && !measures_limit; }
  bool uses_gpus() const { return device == DeviceKind::cuda; }
  int ranks_per_process() const { return threads * gpus; }
  // What a report names; zero for CPU memory.
  int gpus_per_thread() const { return uses_gpus() ? gpus : 0; }
  // True if standard output is for programs, so that the table goes to standard error.
  bool prints_report() const { return json_path == kStandardOutput || csv_path == kStandardOutput; }
  // On CPU memory: true if a call returns when it is done. On CUDA memory: true if it is put on the default stream.
  bool null_stream() const { return stream_null.value_or(!uses_gpus()); }
};

// The outcome of reading the command line: arguments, or a text to print and the exit status to end with.
struct Parsed {
  std::optional<Arguments> arguments;
  ExitCode exit_code = ExitCode::success;
  std::string text;
};

Parsed parse_arguments(int argc, char* const* argv);

// Returns the size that follows `bytes` in a sweep.
std::size_t next_size(const Arguments& arguments, std::size_t bytes);

}  // namespace fccl::perf
