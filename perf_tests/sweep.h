// One rank's part of a run: its library, its memory, and the loop over types, operators, roots and sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "gpu/gpu.h"
#include "meter.h"
#include "run.h"
#include "uneven.h"

namespace fccl::perf {

// Bytes of the process's memory, one after another: in the library, in the buffers, in the calls.
struct MemoryUse {
  double joining = 0;
  double buffers = 0;
  double calls = 0;
};

// Made and used by one thread. Ends all processes of the run when a call of the library fails.
class Sweep {
 public:
  Sweep(const Run& run, int thread);

  // Runs everything; the number of checks of the whole run that saw a wrong element.
  std::uint64_t operator()();
  // What the process has taken since this sweep was made; right on thread 0.
  const MemoryUse& memory_use() const { return memory_use_; }
  // What the process has in its arena while the buffers are there.
  std::string arena_text() const;
  // What init took, where it was asked for.
  const std::vector<std::string>& init_lines() const { return init_lines_; }

 private:
  void run_sizes(const Case& chosen, int root);
  void warm_up(const Case& chosen, int root);
  // Good until the next one is made.
  Subject subject(const Case& chosen, int root, std::size_t bytes);
  void report(const Row& row);
  std::vector<std::string> describe_init();
  // Bytes that the process has taken since the last call.
  double more_memory();

  const Run& run_;
  const int thread_;
  double resident_;
  MemoryUse memory_use_;
  std::vector<std::string> init_lines_;
  std::unique_ptr<Gpu> gpu_;  // null where the memory is the host's
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<Meter> meter_;
  std::optional<Samples> samples_;  // of the current case, where it reduces
  UnevenCounts counts_;             // of the current subject, where its blocks have counts of their own
};

}  // namespace fccl::perf
